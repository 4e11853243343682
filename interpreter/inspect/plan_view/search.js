// Finds instructions by op type, variable or number. "op:", "var:", "frees:" and "stream:" look in
// one of them only; "family:" is what the legend asks for.
class SearchIndex {
  constructor(model) {
    this.model = model;
    const lower = (texts) => texts.join('\n').toLowerCase();
    this.fields = model.order.map((id) => {
      const i = model.instructions[id];
      return {
        id,
        op: i.type.toLowerCase(),
        var: lower([...i.reads, ...i.writes]),
        frees: lower(i.frees),
        stream: model.streamOf(i).name.toLowerCase(),
        family: i.family[0],
      };
    });
  }

  // Ids in trace order.
  find(query) {
    const text = query.trim().toLowerCase();
    if (text === '') return [];
    const number = /^#(\d+)$/.exec(text);
    if (number) return Number(number[1]) < this.fields.length ? [Number(number[1])] : [];
    const scoped = /^(op|var|frees|stream|family):\s*(.+)$/.exec(text);
    const matches = scoped ?
      (f) => f[scoped[1]].includes(scoped[2]) :
      (f) => f.op.includes(text) || f.var.includes(text) || `${f.id}` === text;
    return this.fields.filter(matches).map((f) => f.id);
  }
}
