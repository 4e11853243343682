// Finds ops of all blocks by type, variable, attribute or number. "op:", "var:" and "attr:" look in
// one of them only; "family:" and "part:" are what the legend asks for.
class SearchIndex {
  constructor(program) {
    this.ops = program.list.flatMap((model) => model.ops);
    this.strings = program.strings.map((text) => text.toLowerCase());
    this.attrs = program.attrs.map((list) =>
      list.map(([name, text]) => `${name}=${text}`).join('\n').toLowerCase());
  }

  // Ops, in the order of the blocks and within them.
  find(query) {
    const text = query.trim().toLowerCase();
    if (text === '') return [];
    const number = /^#(\d+)$/.exec(text);
    if (number) return this.ops.filter(({id}) => id === Number(number[1]));
    const scoped = /^(op|var|attr|family|part):\s*(.+)$/.exec(text);
    return this.ops.filter(this.matcher(scoped?.[1] ?? 'any', scoped?.[2] ?? text));
  }

  // Each distinct text is looked at once.
  matcher(scope, text) {
    const types = new Set();
    const holds = new Uint8Array(this.strings.length);
    this.strings.forEach((string, index) => {
      if (string.includes(text)) holds[index] = 1;
    });
    for (const {type} of this.ops) if (type.toLowerCase().includes(text)) types.add(type);
    const attrs = new Uint8Array(this.attrs.map((attr) => (attr.includes(text) ? 1 : 0)));
    const tests = {
      op: ({type}) => types.has(type),
      var: ({names}) => names.some((name) => holds[name] === 1),
      attr: (op) => attrs[op.attrs] === 1,
      family: ({family}) => family[0] === text,
      part: ({part}) => part === text,
    };
    return tests[scope] ?? ((op) => tests.op(op) || tests.var(op) || tests.attr(op));
  }
}
