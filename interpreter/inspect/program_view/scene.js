// One block as it is drawn: its graph, where things stand, and what part of it is on screen. It is
// kept while other blocks are shown, so that one comes back to where one was.
const MIN_SCALE = 0.03;
const MAX_SCALE = 2.5;
const MARGIN = 40;
const MINIMAP_WIDTH = 72;

class Scene {
  constructor(model) {
    this.model = model;
    this.graph = new Graph(model);
    this.placing = new Placing(this.graph);
    this.camera = new Camera(this.placing);
    this.parts = this.count((op) => op.part);
    this.families = this.countFamilies();
  }

  count(keyOf) {
    const counts = new Map();
    for (const op of this.model.ops) counts.set(keyOf(op), (counts.get(keyOf(op)) ?? 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]);
  }

  // [{family, size, types: [[type, count]]}], the largest first.
  countFamilies() {
    const families = new Map();
    for (const [type, count] of this.count((op) => op.type)) {
      const family = familyOf(type);
      if (!families.has(family)) families.set(family, {family, size: 0, types: []});
      families.get(family).size += count;
      families.get(family).types.push([type, count]);
    }
    return [...families.values()].sort((a, b) => b.size - a.size);
  }
}

class Camera {
  constructor(placing) {
    this.placing = placing;
    this.x = 0;  // of the graph, at the upper left corner
    this.y = 0;
    this.scale = 1;
    this.width = 0;
    this.height = 0;
    this.fresh = true;  // nobody has looked yet
  }

  get free() {
    return this.width - MINIMAP_WIDTH;
  }

  resize(width, height) {
    [this.width, this.height] = [width, height];
    if (this.fresh && width > 0) this.start();
    this.clamp();
  }

  // The whole where that can be read, else its beginning.
  start() {
    this.fresh = false;
    this.scale = Math.min(Math.max(this.wholeScale(), 0.9), 1.2);
    const [item] = this.placing.rows[0] ?? [];
    this.center(this.placing.width * this.scale < this.free ? this.placing.width / 2 : item?.x ?? 0, 0);
    this.y = -MARGIN / this.scale;
  }

  wholeScale() {
    const {width, height} = this.placing;
    return Math.min(this.free / (width + 2 * MARGIN), this.height / (height + 2 * MARGIN));
  }

  showWhole() {
    this.scale = Math.min(Math.max(this.wholeScale(), MIN_SCALE), MAX_SCALE);
    this.center(this.placing.width / 2, this.placing.height / 2);
  }

  toWorld(x, y) {
    return [this.x + x / this.scale, this.y + y / this.scale];
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale, (y - this.y) * this.scale];
  }

  pan(dx, dy) {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
    this.clamp();
  }

  // Keeps the point of the screen where it is.
  zoom(factor, x = this.free / 2, y = this.height / 2) {
    const [worldX, worldY] = this.toWorld(x, y);
    this.scale = Math.min(Math.max(this.scale * factor, MIN_SCALE), MAX_SCALE);
    this.x = worldX - x / this.scale;
    this.y = worldY - y / this.scale;
    this.clamp();
  }

  center(x, y) {
    this.x = x - this.free / 2 / this.scale;
    this.y = y - this.height / 2 / this.scale;
    this.clamp();
  }

  // Scrolls only as far as needed.
  reveal(item) {
    const [x, y] = this.toScreen(item.x, item.layer * LAYER_HEIGHT + NODE_HEIGHT / 2);
    const away = x < 120 || x > this.free - 120 || y < 90 || y > this.height - 90;
    if (away || this.scale < 0.4) {
      this.scale = Math.max(this.scale, 0.7);
      this.center(item.x, item.layer * LAYER_HEIGHT);
    }
  }

  // Some of the graph stays on screen; what fits is in the middle.
  clamp() {
    const {width, height} = this.placing;
    const limit = (at, size, screen) => {
      const [low, high] = [-MARGIN / this.scale, size - (screen - MARGIN) / this.scale];
      return low > high ? (size - screen / this.scale) / 2 : Math.min(Math.max(at, low), high);
    };
    this.x = limit(this.x, width, this.free);
    this.y = height * this.scale < this.height - 2 * MARGIN ? -MARGIN / this.scale : limit(this.y, height, this.height);
  }

  // The first and last layer on screen.
  get layers() {
    const last = this.placing.rows.length - 1;
    return [Math.max(0, this.placing.layerAt(this.y) - 1),
      Math.min(last, this.placing.layerAt(this.y + this.height / this.scale) + 1)];
  }
}
