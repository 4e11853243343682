// One block as it is drawn: where things stand, and what part of it is on screen. It is kept while
// other blocks are shown, so that one comes back to where one was.
class Scene {
  constructor(model) {
    this.model = model;
    this.camera = new Camera(model.order.length);
    this.families = this.countFamilies();
  }

  // `widthOf`: see Layout.
  arrange(branches, widthOf) {
    if (this.branches === branches) return;
    this.branches = branches;
    this.layout = new Layout(this.model, branches, widthOf);
    this.edges = new EdgePainter(this.model, this.layout, this.camera);
  }

  countFamilies() {
    const families = new Map();
    for (const {family, type} of this.model.instructions) {
      if (!families.has(family[0])) families.set(family[0], {family, size: 0, counts: new Map()});
      const entry = families.get(family[0]);
      ++entry.size;
      entry.counts.set(type, (entry.counts.get(type) ?? 0) + 1);
    }
    return [...families.values()].sort((a, b) => b.size - a.size).map((entry) => (
      {...entry, types: [...entry.counts].sort((a, b) => b[1] - a[1])}));
  }
}
