// The whole block in a strip at the right edge, with the part on screen, hits and the chosen op.
class Minimap {
  constructor(painter) {
    this.painter = painter;
    this.picture = document.createElement('canvas');
  }

  get x() {
    return this.painter.camera.width - MINIMAP_WIDTH;
  }

  // Pixels of the strip for one of the graph, across and down.
  get scales() {
    const {camera, placing} = this.painter;
    const down = Math.min((camera.height - 12) / Math.max(placing.height, 1), 0.12);
    return [Math.min((MINIMAP_WIDTH - 12) / Math.max(placing.width, 1), 0.12), down];
  }

  contains(x) {
    return x >= this.x;
  }

  // Where of the graph a point of the strip is.
  worldAt(x, y) {
    const [across, down] = this.scales;
    return [(x - this.x - 6) / across, (y - 6) / down];
  }

  // Drawn once for each size, block and theme: copying it is what a frame pays.
  render(state) {
    const {camera, colors, placing, ratio} = this.painter;
    this.picture.width = Math.round(MINIMAP_WIDTH * ratio);
    this.picture.height = Math.max(Math.round(camera.height * ratio), 1);
    const ctx = this.picture.getContext('2d');
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colors['--surface'];
    ctx.fillRect(0, 0, MINIMAP_WIDTH, camera.height);
    ctx.fillStyle = colors['--line'];
    ctx.fillRect(0, 0, 1, camera.height);
    for (const item of placing.items) this.mark(ctx, 6, item, this.painter.colorOf(item.node, state), 1);
  }

  mark(ctx, x, item, color, least) {
    const [across, down] = this.scales;
    ctx.fillStyle = color;
    ctx.fillRect(x + (item.x - item.width / 2) * across, 6 + item.layer * LAYER_HEIGHT * down,
        Math.max(item.width * across, least), Math.max(NODE_HEIGHT * down, least));
  }

  draw(ctx, state) {
    const {camera, colors, placing} = this.painter;
    ctx.drawImage(this.picture, this.x, 0, MINIMAP_WIDTH, camera.height);
    for (const id of state.hits) this.mark(ctx, this.x + 6, placing.items[id], colors['--hit-strong'], 3);
    for (const id of state.marked) this.mark(ctx, this.x + 6, placing.items[id], colors['--accent'], 3);
    if (state.selected !== null) this.mark(ctx, this.x + 6, placing.items[state.selected], colors['--accent'], 5);
    const [across, down] = this.scales;
    const clip = (low, size, end) => [Math.max(low, 0), Math.min(low + size, end)];
    const [left, right] = clip(6 + camera.x * across, camera.free / camera.scale * across, MINIMAP_WIDTH - 1);
    const [top, bottom] = clip(6 + camera.y * down, camera.height / camera.scale * down, camera.height);
    ctx.strokeStyle = ctx.fillStyle = colors['--accent'];
    ctx.lineWidth = 1;
    ctx.globalAlpha = 0.12;
    ctx.fillRect(this.x + left, top, right - left, Math.max(bottom - top, 4));
    ctx.globalAlpha = 0.8;
    ctx.strokeRect(this.x + left + 0.5, top + 0.5, right - left - 1, Math.max(bottom - top, 4) - 1);
    ctx.globalAlpha = 1;
  }
}
