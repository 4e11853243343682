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
