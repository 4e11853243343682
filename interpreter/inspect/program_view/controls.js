class Controls extends PageControls {
  constructor(viewer) {
    super(viewer, ['parts', 'far']);
  }

  leave() {
    this.hover(null, null);
  }

  choose(x, y) {
    const {viewer} = this;
    const {node, edge} = this.at(x, y);
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

  ownActions() {
    const {viewer} = this;
    return {
      '0': () => viewer.showWhole(),
      '1': () => viewer.zoom(1 / viewer.camera.scale),
      'c': () => viewer.toggle('parts'),
      'f': () => viewer.toggle('far'),
    };
  }
}
