// Finds instructions of all blocks by op type, variable or number. "op:", "var:", "frees:" and
// "stream:" look in one of them only; "family:" is what the legend asks for.
class SearchIndex {
  constructor(blocks) {
    this.fields = blocks.list.flatMap((model) => this.fieldsOf(model));
  }

  fieldsOf(model) {
    const lower = (texts) => texts.join('\n').toLowerCase();
    return model.order.map((id) => {
      const i = model.instructions[id];
      return {
        id,
        model,
        op: i.type.toLowerCase(),
        var: lower([...i.reads, ...i.writes]),
        frees: lower(i.frees),
        stream: model.streamOf(i).name.toLowerCase(),
        family: i.family[0],
      };
    });
  }

  // {id, model}, in the order of the blocks and of their instructions.
  find(query) {
    const text = query.trim().toLowerCase();
    if (text === '') return [];
    const number = /^#(\d+)$/.exec(text);
    const scoped = /^(op|var|frees|stream|family):\s*(.+)$/.exec(text);
    const matches = number ? (f) => f.id === Number(number[1]) : scoped ?
      (f) => f[scoped[1]].includes(scoped[2]) :
      (f) => f.op.includes(text) || f.var.includes(text) || `${f.id}` === text;
    return this.fields.filter(matches);
  }
}

// What the latest search has found, and which of it is looked at.
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
    const row = ({id, model: of}) => of.instructions[id].position;
    const choices = [(hit) => hit.model === model && row(hit) >= position, (hit) => hit.model === model,
      (hit) => hit.model.rank > model.rank, () => true];
    for (const fits of choices) {
      const index = this.list.findIndex(fits);
      if (index >= 0) return index;
    }
    return -1;
  }
}
