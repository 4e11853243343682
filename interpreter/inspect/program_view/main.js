const start = performance.now();
const viewer = new Viewer(JSON.parse(byId('program').textContent));
viewer.start();
const startMs = performance.now() - start;

// For tests and for the curious at the console.
window.programView = {
  startMs,
  // Where to click for an op, in coordinates of the window; it is brought on screen.
  pointOf(id) {
    const item = viewer.scene.placing.items[id];
    viewer.camera.center(item.x, item.layer * LAYER_HEIGHT);
    viewer.changed();
    return this.inWindow(item.x, item.layer * LAYER_HEIGHT + NODE_HEIGHT / 2);
  },
  // A point of the edge between two ops.
  pointOfEdge(from, to) {
    const {graph, placing} = viewer.scene;
    const [item, next] = graph.nodes[from].after.find((edge) => edge.to.index === to).chain;
    viewer.camera.center(item.x, item.layer * LAYER_HEIGHT);
    viewer.changed();
    const share = 0.3;
    return this.inWindow(curveX(item.x, next.x, share),
        item.layer * LAYER_HEIGHT + NODE_HEIGHT + share * (LAYER_HEIGHT - NODE_HEIGHT));
  },
  inWindow(x, y) {
    const box = byId('canvas').getBoundingClientRect();
    const [left, top] = viewer.camera.toScreen(x, y);
    return {x: box.left + left, y: box.top + top};
  },
  // By op: {x, y, width} in the graph; edges that are not far run down.
  places: () => viewer.scene.placing.items.map(({x, layer, width}) => ({x, y: layer * LAYER_HEIGHT, width, layer})),
  edges: () => viewer.scene.graph.edges.map(({from, to, far}) => ({from: from.index, to: to.index, far})),
  // Of the latest frame: what is drawn, and what it took.
  drawn: () => ({...viewer.painter.drawn, ms: viewer.frameMs}),
};
