// What the canvas shows. The state it is drawn from is the viewer's; nothing here changes it.
const FONTS = {};
const PARTS = ['forward', 'backward', 'update', 'schedule'];
const CANVAS_COLORS = ['surface', 'line', 'line-strong', 'text', 'text-2', 'text-3', 'accent',
  'hit-strong', 'tint', ...PARTS.map((part) => `part-${part}`),
  ...FAMILIES.map(([key]) => `f-${key}`), 'f-other'].map((name) => `--${name}`);
const TEXT_SCALE = 0.42;  // below it boxes have no text
const MAX_SEGMENTS = 30000;  // in one frame
const MAX_FAR = 300;

class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.ctx = canvas.getContext('2d');
    this.texts = new Texts(this.ctx);
    this.drawn = {nodes: 0, segments: 0, far: 0, hidden: false};
    this.readTheme();
  }

  get camera() {
    return this.scene.camera;
  }

  get placing() {
    return this.scene.placing;
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    this.colors = Object.fromEntries(CANVAS_COLORS.map((name) => [name, style.getPropertyValue(name).trim()]));
    const [sans, mono] = ['--sans', '--mono'].map((name) => style.getPropertyValue(name));
    Object.assign(FONTS, {type: `600 12px ${sans}`, name: `10.5px ${mono}`, small: `600 10px ${sans}`});
  }

  resize() {
    this.ratio = window.devicePixelRatio || 1;
    this.camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    this.canvas.width = Math.round(this.camera.width * this.ratio);
    this.canvas.height = Math.round(this.camera.height * this.ratio);
  }

  colorOf(node, state) {
    if (node.op === null) return this.colors['--f-io'];
    return this.colors[state.show.parts ? `--part-${node.op.part}` : `--f-${node.op.family[0]}`];
  }

  draw(state) {
    const {ctx, camera, colors, ratio} = this;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colors['--surface'];
    ctx.fillRect(0, 0, camera.width, camera.height);
    const scale = ratio * camera.scale;
    ctx.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale);
    this.drawn = {nodes: 0, segments: 0, far: 0, hidden: false};
    this.drawEdges(state);
    this.drawNodes(state);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  // Where layers are thinner than a pixel some stand for all.
  forLayers(visit) {
    const [first, last] = this.camera.layers;
    const step = Math.max(1, Math.floor(0.7 / (LAYER_HEIGHT * this.camera.scale)));
    for (let layer = first; layer <= last; layer += step) visit(this.placing.rows[layer]);
  }

  isOnScreen(item, room) {
    const {camera} = this;
    return item.x + room >= camera.x && item.x - room <= camera.x + camera.width / camera.scale;
  }

  drawEdges(state) {
    const {ctx, colors} = this;
    ctx.strokeStyle = colors['--line-strong'];
    ctx.lineWidth = Math.max(1.2, 0.6 / this.camera.scale);
    ctx.beginPath();
    this.forLayers((row) => {
      for (const item of row) {
        for (const segment of item.down) this.addSegment(segment);
      }
    });
    ctx.stroke();
    if (state.show.far) this.drawFarEdges();
    const chosen = this.edgesOf(state);
    if (chosen.length === 0) return;
    ctx.strokeStyle = ctx.fillStyle = colors['--accent'];
    ctx.lineWidth = Math.max(2, 1.2 / this.camera.scale);
    ctx.beginPath();
    for (const edge of chosen) this.addEdge(edge);
    ctx.stroke();
    for (const edge of chosen) this.drawHead(edge.chain.at(-1));
  }

  // Those of the chosen op and what the pointer is on.
  edgesOf({selected, hovered, hoveredEdge}) {
    const edges = new Set(hoveredEdge ? [hoveredEdge] : []);
    for (const node of [selected === null ? null : this.scene.graph.nodes[selected], hovered]) {
      if (node === null) continue;
      for (const edge of [...node.before, ...node.after].slice(0, MAX_FAR)) edges.add(edge);
    }
    return [...edges];
  }

  addSegment({from, to}) {
    const {drawn} = this;
    if (drawn.segments >= MAX_SEGMENTS) {
      drawn.hidden = true;
      return;
    }
    if (!this.isOnScreen(from, 200) && !this.isOnScreen(to, 200)) return;
    ++drawn.segments;
    this.addCurve(from, to);
  }

  // From the foot of one item to the head of another; through a layer it leads straight.
  addCurve(from, to) {
    const {ctx} = this;
    const [y1, y2] = [from.layer * LAYER_HEIGHT + NODE_HEIGHT, to.layer * LAYER_HEIGHT];
    const middle = (y1 + y2) / 2;
    ctx.moveTo(from.x, from.node ? y1 : y1 - NODE_HEIGHT);
    ctx.lineTo(from.x, y1);
    ctx.bezierCurveTo(from.x, middle, to.x, middle, to.x, y2);
  }

  addEdge({chain, far}) {
    if (far) ++this.drawn.far;
    for (let i = 1; i < chain.length; ++i) this.addCurve(chain[i - 1], chain[i]);
  }

  drawHead(item) {
    const {ctx} = this;
    const y = item.layer * LAYER_HEIGHT;
    ctx.beginPath();
    ctx.moveTo(item.x, y);
    ctx.lineTo(item.x - 4, y - 7);
    ctx.lineTo(item.x + 4, y - 7);
    ctx.fill();
  }

  // Of what is on screen, thin and up to a number.
  drawFarEdges() {
    const {ctx, colors, drawn, scene} = this;
    ctx.save();
    ctx.strokeStyle = colors['--text-3'];
    ctx.globalAlpha = 0.35;
    ctx.lineWidth = Math.max(1, 0.6 / this.camera.scale);
    ctx.beginPath();
    this.forLayers((row) => {
      for (const {node} of row) {
        if (node === null || drawn.far >= MAX_FAR) continue;
        for (const edge of scene.graph.nodes[node.index].after) if (edge.far) this.addEdge(edge);
      }
    });
    ctx.stroke();
    ctx.restore();
  }

  drawNodes(state) {
    const hits = new Set(state.hits);
    const marked = new Set(state.marked);
    this.forLayers((row) => {
      for (const item of row) {
        if (item.node === null || !this.isOnScreen(item, item.width)) continue;
        ++this.drawn.nodes;
        this.drawNode(item, state, hits.has(item.node.index), marked.has(item.node.index));
      }
    });
  }

  drawNode(item, state, hit, marked) {
    const {ctx, camera, colors} = this;
    const {node} = item;
    const [left, top] = [item.x - item.width / 2, item.layer * LAYER_HEIGHT];
    const color = this.colorOf(node, state);
    const chosen = node.op !== null && node.index === state.selected;
    if (camera.scale < 0.12 && !chosen && !hit && !marked) {
      ctx.fillStyle = color;
      ctx.fillRect(left, top, item.width, NODE_HEIGHT);
      return;
    }
    const path = new Path2D();
    path.roundRect(left, top, item.width, NODE_HEIGHT, node.op ? 6 : NODE_HEIGHT / 2);
    if (node.op && node.op.inner.length > 0) this.drawStack(left, top, item.width, color);
    if (hit || marked) this.drawHalo(path, hit ? colors['--hit-strong'] : colors['--accent']);
    this.fillNode(path, color, left, top, node.op !== null);
    ctx.strokeStyle = chosen || node === state.hovered ? colors['--accent'] : color;
    ctx.lineWidth = chosen ? 3 : 1;
    ctx.globalAlpha = chosen ? 1 : 0.7;
    ctx.stroke(path);
    ctx.globalAlpha = 1;
    if (camera.scale < TEXT_SCALE) return;
    this.drawTexts(item, left, top);
    this.drawFarMarks(item, top);
  }

  fillNode(path, color, left, top, hasBar) {
    const {ctx, colors} = this;
    ctx.fillStyle = colors['--surface'];
    ctx.fill(path);
    ctx.fillStyle = color;
    ctx.globalAlpha = Number(colors['--tint']) * (this.camera.scale < TEXT_SCALE ? 3 : 1.2);
    ctx.fill(path);
    ctx.globalAlpha = 1;
    if (!hasBar) return;
    ctx.save();
    ctx.clip(path);
    ctx.fillRect(left, top, 5, NODE_HEIGHT);
    ctx.restore();
  }

  drawHalo(path, color) {
    const {ctx} = this;
    ctx.save();
    ctx.strokeStyle = color;
    ctx.lineWidth = Math.max(8, 3 / this.camera.scale);
    ctx.globalAlpha = 0.6;
    ctx.stroke(path);
    ctx.restore();
  }

  // The box of an op that runs a block has others behind it.
  drawStack(left, top, width, color) {
    const {ctx, colors} = this;
    for (const shift of [8, 4]) {
      const path = new Path2D();
      path.roundRect(left + shift, top + shift, width, NODE_HEIGHT, 6);
      ctx.fillStyle = colors['--surface'];
      ctx.fill(path);
      ctx.strokeStyle = color;
      ctx.lineWidth = 1;
      ctx.stroke(path);
    }
  }

  drawTexts({node, width}, left, top) {
    const {ctx, colors, texts} = this;
    const {op} = node;
    const mark = op && op.inner.length > 0 ? `b${op.inner.map(({index}) => index).join(',')}` : '';
    ctx.textAlign = op ? 'left' : 'center';
    const x = op ? left + 14 : left + width / 2;
    ctx.font = FONTS.small;
    const room = width - 22 - (mark === '' ? 0 : texts.measure(mark) + 6);
    ctx.fillStyle = colors['--accent'];
    if (mark !== '') ctx.fillText(mark, left + width - texts.measure(mark) - 8, top + 16);
    ctx.fillStyle = colors['--text'];
    ctx.font = FONTS.type;
    if (op) ctx.fillText(texts.fit(op.type, room), x, top + 17);
    ctx.fillStyle = colors[op ? '--text-2' : '--text'];
    ctx.font = FONTS.name;
    ctx.fillText(texts.fit(nameOf(node), width - 22), x, op ? top + 32 : top + 24);
    ctx.textAlign = 'left';
  }

  // Dots where far edges begin and end.
  drawFarMarks({node, x, width}, top) {
    const {ctx, colors} = this;
    ctx.fillStyle = colors['--text-3'];
    const dot = (y) => {
      ctx.beginPath();
      ctx.arc(x + width / 2 - 12, y, 3, 0, 2 * Math.PI);
      ctx.fill();
    };
    if (node.before.some(({far}) => far)) dot(top);
    if (node.after.some(({far}) => far)) dot(top + NODE_HEIGHT);
  }
}
