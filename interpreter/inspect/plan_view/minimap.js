// The whole plan in a strip at the right edge, with the part on screen, hits and the chosen row.
class Minimap {
  constructor(painter) {
    this.painter = painter;
    this.picture = document.createElement('canvas');
  }

  get scale() {
    const {camera} = this.painter;
    return Math.min((camera.bodyHeight - 8) / camera.rows, 6);
  }

  get x() {
    return this.painter.camera.width - MINIMAP_WIDTH;
  }

  contains(x, y) {
    return x >= this.x && y >= HEAD_HEIGHT;
  }

  positionAt(y) {
    return Math.floor((y - HEAD_HEIGHT - 4) / this.scale);
  }

  // Drawn once for each size, layout and theme: copying it is what a frame pays.
  render() {
    const {camera, layout, model, colors, ratio} = this.painter;
    this.picture.width = Math.round(MINIMAP_WIDTH * ratio);
    this.picture.height = Math.max(Math.round(camera.bodyHeight * ratio), 1);
    const ctx = this.picture.getContext('2d');
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colors['--surface'];
    ctx.fillRect(0, 0, MINIMAP_WIDTH, camera.bodyHeight);
    const lane = (MINIMAP_WIDTH - 16) / layout.lanes.length;
    const height = Math.max(this.scale - (this.scale > 3 ? 1 : 0), 0.75);
    for (const {id, position, family} of model.instructions) {
      ctx.fillStyle = colors[`--f-${family[0]}`];
      ctx.fillRect(8 + layout.laneOf[id] * lane, 4 + position * this.scale, lane - 1, height);
    }
  }

  draw(ctx, state) {
    const {camera, colors, model} = this.painter;
    ctx.drawImage(this.picture, this.x, HEAD_HEIGHT, MINIMAP_WIDTH, camera.bodyHeight);
    ctx.fillStyle = colors['--surface'];
    ctx.fillRect(this.x, 0, MINIMAP_WIDTH, HEAD_HEIGHT - 1);
    ctx.fillStyle = colors['--line'];
    ctx.fillRect(this.x, 0, 1, camera.height);
    const rowY = (position) => HEAD_HEIGHT + 4 + position * this.scale;
    const mark = (id, color, width) => {
      ctx.fillStyle = color;
      ctx.fillRect(this.x + 1, rowY(model.instructions[id].position) - 0.5, width, Math.max(this.scale, 2));
    };
    for (const id of state.hits) mark(id, colors['--hit-strong'], 6);
    for (const id of state.marked) mark(id, colors['--accent'], 6);
    if (state.selected !== null) mark(state.selected, colors['--accent'], MINIMAP_WIDTH);
    const top = Math.max(rowY((camera.y - 6) / camera.rowHeight), HEAD_HEIGHT);
    const height = Math.max((camera.bodyHeight / camera.rowHeight) * this.scale, 6);
    ctx.fillStyle = colors['--accent'];
    ctx.globalAlpha = 0.12;
    ctx.fillRect(this.x + 1, top, MINIMAP_WIDTH - 1, height);
    ctx.globalAlpha = 0.8;
    ctx.strokeStyle = colors['--accent'];
    ctx.lineWidth = 1;
    ctx.strokeRect(this.x + 1.5, top + 0.5, MINIMAP_WIDTH - 3, height - 1);
    ctx.globalAlpha = 1;
  }
}
