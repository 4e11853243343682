// The panel beside the canvas: an op, a variable, or the program when nothing is chosen.
const MAX_LINKS = 60;  // in one list

class Details extends Panel {
  constructor(element, program, actions) {
    super(element, actions);
    this.program = program;
    this.statistics = new Statistics(program);
  }

  showOp(op, node) {
    this.show(this.opHead(op), [
      ...this.blockSections(op),
      this.attributeSection(op),
      this.slotSection('Inputs', op.ins, (v) => this.producers(v, node)),
      this.slotSection('Outputs', op.outs, (v) => this.consumers(v, node)),
      this.inplaceSection(op),
      this.neighbourSection('Reads from', node.before.map(({from}) => from)),
      this.neighbourSection('Read by', node.after.map(({to}) => to)),
    ]);
  }

  opHead(op) {
    return this.stepHead(op, op.id, op.model.ops.length, `in block ${op.model.index} \u00b7 ${op.part}`);
  }

  blockSections(op) {
    if (op.inner.length === 0) return [];
    const open = op.inner.map((inner) => make('button', {class: 'enter', type: 'button', title: 'Enter, or a double click',
      onclick: () => this.actions.show(inner)}, `Open block ${inner.index}`,
    make('span', {class: 'count'}, counted(inner.ops.length, 'op'))));
    const access = new Map();
    for (const inner of op.inner) {
      const {reads, writes} = inner.captures();
      for (const v of reads) access.set(v, 'reads');
      for (const v of writes) access.set(v, reads.has(v) ? 'reads, writes' : 'writes');
    }
    const rows = [...access].slice(0, MAX_LINKS).map(([v, what]) => this.argumentRow(what, v, null));
    return [this.section('Runs', open),
      rows.length === 0 ? null : this.section('Used by the block', rows, access.size)];
  }

  attributeSection(op) {
    const attributes = this.program.attrs[op.attrs];
    if (attributes.length === 0) return null;
    return this.section('Attributes',
        this.facts(attributes.map(([name, text]) => [name, make('code', {}, text)])), attributes.length);
  }

  slotSection(title, slots, usersOf) {
    const rows = slots.flatMap(({slot, args}) => args.map((v, index) =>
      this.argumentRow(args.length > 1 ? `${slot}[${index}]` : slot, v, v === null ? null : usersOf(v))));
    return rows.length === 0 ? null : this.section(title, rows, rows.length);
  }

  argumentRow(slot, v, users) {
    const what = v === null ? this.note('none') : [this.varLink(v), make('div', {class: 'type'},
        make('code', {}, v.type), ...v.flagNames().map((name) => tag(name)), this.troubleTag(v)), users];
    return make('div', {class: 'argument'}, make('div', {class: 'row'},
        make('span', {class: 'slot'}, slot), make('div', {class: 'what'}, what)));
  }

  troubleTag(v) {
    const statistics = this.statistics.of(v);
    const trouble = statistics === undefined ? '' : this.statistics.trouble(statistics);
    return trouble === '' ? null : tag(trouble, 'free');
  }

  // Who gave the value that this node reads: in its block, else who writes it anywhere.
  producers(v, node) {
    const here = node.before.filter(({vars}) => vars.includes(v)).map(({from}) => from.op).filter((op) => op !== null);
    const elsewhere = v.writers.filter((op) => op.model !== node.op.model);
    return this.users('from ', here.length > 0 ? here : elsewhere, node.op.model);
  }

  consumers(v, node) {
    const here = node.after.filter(({vars}) => vars.includes(v)).map(({to}) => to.op);
    const elsewhere = v.readers.filter((op) => op.model !== node.op.model);
    return this.users('to ', [...here, ...elsewhere], node.op.model);
  }

  users(word, ops, model) {
    if (ops.length === 0) return null;
    const links = ops.slice(0, 8).map((op) => this.opLink(op, model));
    return make('div', {class: 'users'}, word, this.joined(links),
        ops.length > 8 ? ` and ${ops.length - 8} more` : '');
  }

  inplaceSection({inplace}) {
    if (inplace.length === 0) return null;
    return this.section('In place', inplace.map(([input, output]) =>
      make('div', {}, make('code', {}, output), ' is written over ', make('code', {}, input))));
  }

  neighbourSection(title, nodes) {
    const ops = nodes.map(({op}) => op).filter((op) => op !== null);
    return ops.length === 0 ? null : this.section(title, this.opList(ops), ops.length);
  }

  opList(ops, model) {
    return make('div', {class: 'chips'}, ops.slice(0, MAX_LINKS).map((op) => this.opLink(op, model)),
        ops.length > MAX_LINKS ? make('span', {class: 'note'}, `and ${ops.length - MAX_LINKS} more`) : null);
  }

  // `model`: the block that need not be said.
  opLink(op, model = op.model) {
    const where = op.model === model ? '' : ` of block ${op.model.index}`;
    return make('button', {class: 'link', type: 'button',
      onclick: () => this.actions.select(op.id, {model: op.model})}, `#${op.id} ${op.type}${where}`);
  }

  varLink(v) {
    return make('button', {class: 'link mono', type: 'button', onclick: () => this.actions.selectVar(v)}, v.name);
  }

  joined(links, separator = ', ') {
    return links.flatMap((link, index) => (index === 0 ? [link] : [separator, link]));
  }
}
