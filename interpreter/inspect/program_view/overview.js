// The panel for a variable, and for the shown block as a whole.
class Overview {
  constructor(details) {
    this.details = details;
  }

  // `model`: the block that is shown.
  showVar(v, model) {
    const {details} = this;
    const list = (title, ops, none) => details.section(title,
        ops.length > 0 ? details.opList(ops, model) : details.note(none), ops.length);
    const statistics = details.statistics.of(v);
    details.show(details.varHead(v.name, 'Its users are marked in the graph.'), [
      details.section('Variable', this.varFacts(v)),
      statistics === undefined ? null : this.statisticsSection(statistics),
      list('Written by', v.writers, v.persistable ? 'Nobody: it is there before the run.' : 'Nobody.'),
      list('Read by', v.readers, 'Nobody.'),
    ]);
  }

  varFacts(v) {
    const {inputs, outputs} = this.details.program;
    const flags = v.flagNames();
    if (inputs.includes(v)) flags.push('fed');
    if (outputs.includes(v)) flags.push('fetched');
    return this.details.facts([
      ['Type', make('code', {}, v.type)],
      ['Block', v.declared ? `${v.model.index}` : `${v.model.index}, not declared by any`],
      ['Flags', flags.length > 0 ? flags.join(', ') : null],
      ['LoD levels', v.lod > 0 ? `${v.lod}` : null],
    ]);
  }

  statisticsSection(statistics) {
    const {details} = this;
    if (statistics.count === 0) {
      return details.section('Values', details.note(`${statistics.type}: no elements that can be shown.`));
    }
    return details.section('Values', [details.facts(details.statistics.rows(statistics)),
      ...details.statistics.histogram(statistics)]);
  }

  showBlock({model, families, parts}) {
    const {details} = this;
    const main = model === details.program.main;
    details.show(
        make('div', {class: 'head'},
            make('div', {class: 'head-row'}, make('h2', {}, main ? 'The program' : `Block ${model.index}`)),
            make('p', {class: 'sub'}, this.runBy(model))),
        [
          ...(main ? this.programSections() : []),
          details.section('This block', details.facts([
            ['Ops', model.ops.length.toLocaleString('en')],
            ['Variables', model.vars.size.toLocaleString('en')],
          ])),
          parts.length > 1 ? this.partSection(parts) : null,
          this.childSection(model),
          details.section('Op types', families.map((family) => this.familyRow(family))),
          main ? this.parameterSection() : null,
        ]);
  }

  runBy({runner, parent}) {
    if (runner === undefined || parent === undefined) return 'Click an op or an edge for what it is.';
    const {details} = this;
    return ['Run by ', details.opLink(runner), ` of block ${parent.index}.`];
  }

  programSections() {
    const {details} = this;
    const {program} = details;
    const ops = program.blocks.reduce((sum, block) => sum + block.ops.length, 0);
    const vars = program.blocks.reduce((sum, block) => sum + block.vars.size, 0);
    const list = (title, all) => details.section(title, all.length === 0 ? details.note('None.') :
      all.filter((v) => v !== null).map((v, index) => details.argumentRow(`${index}`, v, null)), all.length);
    return [
      details.section('In numbers', details.facts([
        ['Blocks', `${program.blocks.length}`],
        ['Ops', ops.toLocaleString('en')],
        ['Variables', vars.toLocaleString('en')],
        ...program.facts,
      ])),
      this.troubleSection(),
      list('Inputs', program.inputs),
      list('Outputs', program.outputs),
    ];
  }

  // Parameters that hold NaN or infinities.
  troubleSection() {
    const {details} = this;
    const bad = this.parameters().filter((v) => details.troubleTag(v) !== null);
    return bad.length === 0 ? null : details.section('Not finite', this.varRows(bad), bad.length);
  }

  parameters() {
    const {main, statistics} = this.details.program;
    return [...main.vars.values()].filter((v) => v.persistable && (statistics.has(v.name) || (v.flags & 2) !== 0));
  }

  parameterSection() {
    const all = this.parameters();
    return all.length === 0 ? null : this.details.section('Parameters', this.varRows(all), all.length);
  }

  varRows(vars) {
    const {details} = this;
    const rows = vars.slice(0, 200).map((v) => make('div', {class: 'argument'}, details.varLink(v),
        make('div', {class: 'type'}, make('code', {}, v.type), details.troubleTag(v))));
    if (vars.length > 200) rows.push(details.note(`and ${vars.length - 200} more`));
    return rows;
  }

  partSection(parts) {
    const {details} = this;
    return details.section('Parts of a step', details.facts(parts.map(([part, count]) =>
      [make('span', {}, partSwatch(part), ` ${part}`), counted(count, 'op')])));
  }

  childSection(model) {
    const {details} = this;
    const children = details.program.list.filter(({parent}) => parent === model);
    if (children.length === 0) return null;
    return details.section('Blocks it runs', children.map((child) => make('div', {class: 'argument'},
        make('div', {class: 'row'},
            make('button', {class: 'link slot', type: 'button', onclick: () => details.actions.show(child)}, `block ${child.index}`),
            make('div', {class: 'what'}, details.opLink(child.runner)),
            make('span', {class: 'note'}, counted(child.ops.length, 'op'))))), children.length);
  }

  familyRow({family, types}) {
    return make('div', {class: 'argument'}, make('div', {class: 'row'}, swatch(family),
        make('div', {class: 'chips'}, types.map(([type, count]) =>
          make('button', {class: 'link', type: 'button', onclick: () => this.details.actions.search(`op:${type}`)},
              count > 1 ? `${type} \u00d7 ${count}` : type)))));
  }
}

function partSwatch(part) {
  return make('span', {class: 'swatch part', style: `display: inline-block; background: var(--part-${part})`});
}
