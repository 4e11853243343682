// What the panel tells of blocks: of the one that an instruction runs, of the shown one, and of a
// variable that blocks share.
class BlockDetails {
  constructor(details) {
    this.details = details;
  }

  blockLink(model) {
    return make('button', {class: 'link', type: 'button', onclick: () => this.details.actions.show(model)},
        `block ${model.block}`);
  }

  originLink({name, model}) {
    return make('span', {}, this.details.varLink(name, model), ` of block ${model.block}`);
  }

  // "from block 0", in the line of an argument.
  captureNote(name) {
    const [origin] = originsOf(name, this.details.model);
    if (origin === undefined) return null;
    return make('button', {class: 'tag capture', type: 'button', title: `${origin.name} of block ${origin.model.block}`,
      onclick: () => this.details.actions.selectVar(origin.name, origin.model)}, `from block ${origin.model.block}`);
  }

  instructionSections(i) {
    if (!i.inner) return [];
    const {details} = this;
    const {inner} = i;
    const open = make('button', {class: 'enter', type: 'button', title: 'Enter, or a double click',
      onclick: () => details.actions.show(inner)}, `Open block ${inner.block}`,
    make('span', {class: 'count'}, counted(inner.order.length, 'instruction')));
    const rows = inner.captures.flatMap((capture) => capture.outer.map(({name, access}) =>
      details.argumentRow(access, [...details.argument(name),
        name === capture.name ? null : make('div', {class: 'type'}, 'there ', details.varLink(capture.name, inner))])));
    return [details.section('Runs', open), rows.length === 0 ? null :
      details.section('Captured by the block', rows, rows.length)];
  }

  // Of the block that is shown.
  overviewSections() {
    const {details} = this;
    const {model} = details;
    const captures = model.captures.map(({name, outer}) =>
      details.argumentRow(outer.map(({access}) => access).join(', '), details.argument(name)));
    const chips = (names) => make('div', {class: 'chips'}, names.map((name) => details.varLink(name)));
    const kernel = [['receives', model.entries], ['returns', model.results]]
        .filter(([, names]) => names.length > 0).map(([what, names]) => [what, chips(names)]);
    const children = model.children.map((child) => make('div', {class: 'argument'}, make('div', {class: 'row'},
        make('span', {class: 'slot'}, this.blockLink(child)),
        make('div', {class: 'what'}, details.instructionLink(child.runner)),
        make('span', {class: 'note'}, counted(child.order.length, 'instruction')))));
    return [
      children.length > 0 ? details.section('Blocks it runs', children, children.length) : null,
      captures.length > 0 ? details.section('Captures', captures, captures.length) : null,
      kernel.length > 0 ? details.section('With the kernel that runs it', details.facts(kernel)) : null,
    ];
  }

  // "Run by #3 while of block 0."
  runBy({runner, parent}) {
    return ['Run by ', this.details.instructionLink(runner, {model: parent}), ' of ', this.blockLink(parent), '.'];
  }

  varFacts(v) {
    const {model} = this.details;
    const rows = (links) => (links.length === 0 ? null : links.map((link) => make('div', {}, this.originLink(link))));
    return [
      ['Captured from', rows(originsOf(v.name, model))],
      ['Captured as', rows(v.capturedBy)],
      ['Set', model.entries.includes(v.name) ? 'by the kernel that runs the block, before it does' : null],
      ['Result', model.results.includes(v.name) ? 'read by the kernel that runs the block, after it' : null],
    ];
  }
}
