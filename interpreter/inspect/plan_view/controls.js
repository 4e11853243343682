class Controls extends PageControls {
  constructor(viewer) {
    super(viewer, ['kept', 'shrunk', 'events', 'branches']);
  }

  point(x, y) {
    this.hover(this.viewer.instructionAt(x, y));
  }

  leave() {
    this.hover(null);
  }

  choose(x, y) {
    const id = this.viewer.instructionAt(x, y);
    if (id === null) this.viewer.clear();
    else this.viewer.select(id);
  }

  hover(id) {
    const {state} = this.viewer;
    if (state.hovered === id) return;
    state.hovered = id;
    this.canvas.classList.toggle('over', id !== null);
    this.viewer.changed();
  }

  jump(x, y) {
    this.viewer.camera.center(this.viewer.minimap.positionAt(y));
    this.viewer.changed();
  }

  ownActions() {
    const {viewer} = this;
    return {
      '0': () => viewer.zoomTo(MIN_ROW_HEIGHT),
      '1': () => viewer.zoomTo(ROW_HEIGHT),
      'e': () => viewer.toggle('kept'),
      's': () => viewer.toggle('shrunk'),
      'v': () => viewer.toggle('events'),
      'b': () => viewer.toggle('branches'),
    };
  }
}
