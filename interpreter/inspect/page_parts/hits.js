// What the latest search has found, as {id, model}, and which of it is looked at.
class Hits {
  constructor(index) {
    this.index = index;
    this.list = [];
    this.at = -1;
  }

  search(query) {
    this.list = this.index.find(query);
    this.at = -1;
  }

  idsIn(model) {
    return this.list.filter((hit) => hit.model === model).map((hit) => hit.id);
  }

  // The hit to start with when row `position` of `model` is looked at: one of that block if there
  // is any, the next of those that follow it otherwise.
  nearest(model, position) {
    const row = ({id, model: of}) => of.positionOf(id);
    const choices = [(hit) => hit.model === model && row(hit) >= position, (hit) => hit.model === model,
      (hit) => hit.model.rank > model.rank, () => true];
    for (const fits of choices) {
      const index = this.list.findIndex(fits);
      if (index >= 0) return index;
    }
    return -1;
  }
}
