// Mouse, touch and keys. A page says what is at a point (point, leave, choose), where a press on the
// strip leads (jump), and which keys it has beside these (ownActions).
const WHEEL_LINE = 28;  // pixels of a line, where a wheel counts those

class PageControls {
  // `toggles`: what the page draws or leaves out, each with a button.
  constructor(viewer, toggles) {
    this.viewer = viewer;
    this.toggles = toggles;
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
    canvas.addEventListener('pointerleave', () => this.leave());
    document.addEventListener('keydown', (event) => runKey(event, this.actions()));
    new ResizeObserver(() => viewer.resize()).observe(byId('stage'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      viewer.painter.readTheme();
      viewer.resize();
    });
    window.addEventListener('hashchange', () => viewer.followHash());
    for (const what of this.toggles) byId(`toggle-${what}`).addEventListener('click', () => viewer.toggle(what));
    connectHelp();
    connectSearch(viewer, canvas);
    connectSplitter();
  }

  onWheel(event) {
    event.preventDefault();
    const {viewer} = this;
    const unit = event.deltaMode === 1 ? WHEEL_LINE : 1;
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
    this.press = {x, y, moved: false, minimap: this.viewer.minimap.contains(x, y)};
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

  // The second click of two means the same as the first, which may have scrolled.
  onClick(event) {
    if (this.pressed && event.detail <= 1) this.choose(event.offsetX, event.offsetY);
  }

  actions() {
    const {viewer} = this;
    const page = viewer.pageHeight * 0.9;
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
      '?': () => byId('help').showModal(),
      'Escape': () => (viewer.hits.list.length > 0 ? viewer.search('') : viewer.clear()),
      ...this.ownActions(),
    };
  }
}
