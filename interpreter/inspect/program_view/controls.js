// Mouse, touch and keys.
class Controls {
  constructor(viewer) {
    this.viewer = viewer;
    this.canvas = byId('canvas');
    this.press = null;  // of a pointer: where it went down and what it does
    this.pressed = false;  // whether the latest press did nothing but that
  }

  connect() {
    const {canvas, viewer} = this;
    canvas.addEventListener('wheel', (event) => this.onWheel(event), {passive: false});
    canvas.addEventListener('pointerdown', (event) => this.onDown(event));
    canvas.addEventListener('pointermove', (event) => this.onMove(event));
    canvas.addEventListener('pointerup', () => this.onUp());
    canvas.addEventListener('click', (event) => this.onClick(event));
    canvas.addEventListener('dblclick', () => {
      if (this.pressed) viewer.enter();
    });
    canvas.addEventListener('pointercancel', () => { this.press = null; });
    canvas.addEventListener('pointerleave', () => this.hover(null, null));
    document.addEventListener('keydown', (event) => runKey(event, this.actions()));
    new ResizeObserver(() => viewer.resize()).observe(byId('stage'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      viewer.painter.readTheme();
      viewer.resize();
    });
    window.addEventListener('hashchange', () => viewer.followHash());
    for (const what of ['parts', 'far']) byId(`toggle-${what}`).addEventListener('click', () => viewer.toggle(what));
    connectHelp();
    connectSearch(viewer, canvas);
    connectSplitter();
  }

  onWheel(event) {
    event.preventDefault();
    const {viewer} = this;
    const unit = event.deltaMode === 1 ? 28 : 1;
    if (event.ctrlKey || event.metaKey) {
      viewer.zoom(Math.exp(-event.deltaY * unit * 0.004), event.offsetX, event.offsetY);
    } else {
      const sideways = event.shiftKey && event.deltaX === 0;
      viewer.camera.pan((sideways ? event.deltaY : event.deltaX) * unit, sideways ? 0 : event.deltaY * unit);
      viewer.changed();
    }
  }

  onDown(event) {
    if (event.button !== 0) return;
    const {offsetX: x, offsetY: y} = event;
    this.canvas.setPointerCapture(event.pointerId);
    this.press = {x, y, moved: false, minimap: this.viewer.minimap.contains(x)};
    if (this.press.minimap) this.jump(x, y);
  }

  onMove(event) {
    const {offsetX: x, offsetY: y} = event;
    const {press, viewer} = this;
    if (press === null) return this.point(x, y);
    if (press.minimap) return this.jump(x, y);
    if (!press.moved && Math.hypot(x - press.x, y - press.y) < 4) return;
    press.moved = true;
    this.canvas.classList.add('panning');
    viewer.camera.pan(press.x - x, press.y - y);
    [press.x, press.y] = [x, y];
    viewer.changed();
  }

  onUp() {
    const {press} = this;
    this.press = null;
    this.canvas.classList.remove('panning');
    this.pressed = press !== null && !press.moved && !press.minimap;
  }

  // The second click of two means the same op as the first, which may have scrolled.
  onClick(event) {
    if (!this.pressed || event.detail > 1) return;
    const {viewer} = this;
    const {node, edge} = this.at(event.offsetX, event.offsetY);
    if (node?.op) viewer.select(node.op.id);
    else if (node || edge) viewer.selectVar(node ? node.v : edge.vars[0]);
    else viewer.clear();
  }

  // The node or edge at a point of the canvas.
  at(x, y) {
    const {viewer} = this;
    if (viewer.minimap.contains(x)) return {node: null, edge: null};
    const {camera, placing} = viewer.scene;
    const point = camera.toWorld(x, y);
    const node = placing.nodeAt(...point);
    return {node, edge: node ? null : placing.edgeAt(...point, 6 / camera.scale)};
  }

  point(x, y) {
    const {node, edge} = this.at(x, y);
    this.hover(node, edge, x, y);
  }

  hover(node, edge, x, y) {
    const {state} = this.viewer;
    this.showTip(node, edge, x, y);
    if (state.hovered === node && state.hoveredEdge === edge) return;
    Object.assign(state, {hovered: node, hoveredEdge: edge});
    this.canvas.classList.toggle('over', node !== null || edge !== null);
    this.viewer.changed();
  }

  // What an edge carries, or an op writes.
  showTip(node, edge, x, y) {
    const tip = byId('tip');
    const vars = edge ? edge.vars : node?.v ? [node.v] : node ? node.op.writes() : [];
    tip.hidden = vars.length === 0;
    if (tip.hidden) return;
    tip.replaceChildren(...vars.slice(0, 6).map((v) =>
      make('div', {}, v.name, ' ', make('span', {class: 'type'}, v.type))),
    vars.length > 6 ? `and ${vars.length - 6} more` : '');
    const {width, height} = this.viewer.camera;
    tip.style.left = `${Math.max(Math.min(x + 16, width - tip.offsetWidth - 8), 0)}px`;
    tip.style.top = `${y + 20 + tip.offsetHeight > height ? y - tip.offsetHeight - 10 : y + 20}px`;
  }

  jump(x, y) {
    this.viewer.camera.center(...this.viewer.minimap.worldAt(x, y));
    this.viewer.changed();
  }

  actions() {
    const {viewer} = this;
    const page = viewer.camera.height * 0.9;
    const pan = (dy) => { viewer.camera.pan(0, dy); viewer.changed(); };
    return {
      '/': () => { byId('query').focus(); byId('query').select(); },
      'ArrowUp': () => viewer.step(-1),
      'ArrowDown': () => viewer.step(1),
      'ArrowLeft': () => viewer.follow('before'),
      'ArrowRight': () => viewer.follow('after'),
      'Home': () => viewer.selectAt(0),
      'End': () => viewer.selectAt(Infinity),
      'Enter': () => viewer.enter(),
      'Backspace': () => viewer.leave(),
      'PageUp': () => pan(-page),
      'PageDown': () => pan(page),
      'n': () => viewer.goToHit(viewer.hits.at + 1),
      'p': () => viewer.goToHit(viewer.hits.at - 1),
      '+': () => viewer.zoom(1.25),
      '=': () => viewer.zoom(1.25),
      '-': () => viewer.zoom(0.8),
      '0': () => viewer.showWhole(),
      '1': () => viewer.zoom(1 / viewer.camera.scale),
      'c': () => viewer.toggle('parts'),
      'f': () => viewer.toggle('far'),
      '?': () => byId('help').showModal(),
      'Escape': () => (viewer.hits.list.length > 0 ? viewer.search('') : viewer.clear()),
    };
  }
}
