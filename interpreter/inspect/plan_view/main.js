const viewer = new Viewer(JSON.parse(byId('plan').textContent));
viewer.start();

// For tests and for the curious at the console.
window.planView = {
  // Where to click for an instruction, in coordinates of the window; it is brought on screen.
  pointOf(id) {
    viewer.camera.reveal(viewer.model.instructions[id].position);
    viewer.changed();
    const box = byId('canvas').getBoundingClientRect();
    const lane = viewer.painter.layout.lane(id);
    return {
      x: box.left + lane.boxX + lane.boxWidth / 2 - viewer.camera.x,
      y: box.top + viewer.painter.edges.rowCenter(id),
    };
  },
  // Of the latest frame: edges and events drawn, and what it took.
  drawn: () => ({...viewer.painter.edges.drawn, ms: viewer.frameMs}),
  // Milliseconds of `count` frames drawn one after the other while scrolling through the plan.
  timeFrames(count) {
    const {camera, painter, minimap, state} = viewer;
    const start = performance.now();
    for (let i = 0; i < count; ++i) {
      camera.center((camera.rows * i) / count);
      painter.draw(state);
      minimap.draw(painter.ctx, state);
    }
    return (performance.now() - start) / count;
  },
};
