// The panel for a variable, and for the shown block as a whole.
class Overview {
  constructor(details) {
    this.details = details;
  }

  get model() {
    return this.details.model;
  }

  showVar(name) {
    const {details} = this;
    const v = this.model.vars.get(name);
    const links = (instructions) => make('div', {class: 'chips'},
        instructions.map((i) => details.instructionLink(i)));
    const list = (title, instructions, none) => details.section(title,
        instructions.length > 0 ? links(instructions) : make('p', {class: 'note'}, none), instructions.length);
    details.show(details.varHead(name, 'Its users are marked in the list.'), [
      details.section('Variable', this.varFacts(v)),
      list('Written by', v.writers, this.whyNotWritten(v)),
      list('Read by', v.readers, 'Nobody.'),
      list('Freed after', v.freedBy, this.whyNotFreed(v)),
    ]);
  }

  varFacts(v) {
    const mates = this.model.storageMates(v);
    const flags = [v.constant ? 'constant' : v.persistable ? 'persistable' : '',
      v.declared ? '' : 'not declared by the program', this.model.fetches.has(v.name) ? 'fetched' : '']
        .filter((flag) => flag !== '');
    return this.details.facts([
      ['Type', make('code', {}, this.model.typeOf(v))],
      ['Layout', v.layout === 'plain' ? null : v.layout],
      ['Place', v.place],
      ['Flags', flags.length > 0 ? flags.join(', ') : null],
      ['Use count', v.refs > 0 ? `${v.refs}: the last of these instructions frees it` : null],
      ...this.details.blocks.varFacts(v),
      ['Memory with', mates.length > 0 ?
        make('div', {class: 'chips'}, mates.map((mate) => this.details.varLink(mate.name))) : null],
    ]);
  }

  whyNotWritten(v) {
    if (v.persistable) return 'Nobody: it is there before the run.';
    if (this.model.entries.includes(v.name)) return 'The kernel that runs the block.';
    return v.capture ? 'Nobody in this block.' : 'Nobody.';
  }

  whyNotFreed(v) {
    if (v.persistable) return 'Never: it outlives the run.';
    if (this.model.results.includes(v.name)) return 'Never: the kernel that runs the block reads it.';
    return v.capture ? 'Not in this block: it belongs to a block around it.' : 'Never in this plan.';
  }

  showBlock(families) {
    const {model, details} = this;
    const kept = model.edges.length - model.shrunkCount;
    details.show(
        make('div', {class: 'head'},
            make('div', {class: 'head-row'}, make('h2', {}, model.parent ? `Block ${model.block}` : 'The plan')),
            make('p', {class: 'sub'}, model.parent ? details.blocks.runBy(model) :
              'Click an instruction for all that was decided about it.')),
        [
          details.section('In numbers', details.facts([
            ['Instructions', `${model.order.length}`],
            ['Edges', `${kept} waited for, ${model.shrunkCount} implied by others`],
            ['Longest path', counted(model.criticalPath, 'instruction')],
            ['Width', `${model.width} can run at once`],
            ['Variables', `${model.vars.size}`],
            ['Events', model.usesDevices ? `${model.events.length}` : null],
            ['On the host', model.fallbacks.length > 0 ? `no device kernel: ${model.fallbacks.join(', ')}` : null],
          ])),
          model.trains ? this.partSection() : null,
          ...details.blocks.overviewSections(),
          model.usesDevices ? this.streamSection() : null,
          details.section('Op types', this.typeList(families)),
        ]);
  }

  // The bar beside the row numbers has these colours.
  partSection() {
    const {model, details} = this;
    return details.section('Parts of a step', details.facts([...model.parts].map(([part, count]) =>
      [make('span', {}, make('span', {class: 'swatch', style: `display: inline-block; background: var(--part-${part})`}), ` ${part}`),
        counted(count, 'instruction')])));
  }

  streamSection() {
    const {model, details} = this;
    return details.section('Streams', details.facts(model.streams.map((stream, index) => {
      const count = model.instructions.filter((i) => i.stream === index).length;
      return [stream.name, `${stream.place}, ${count} instructions, priority ${stream.priority}`];
    })));
  }

  typeList(families) {
    return families.map(({family, types}) => make('div', {class: 'argument'}, make('div', {class: 'row'},
        swatch(family), make('div', {class: 'chips'}, types.map(([type, count]) =>
          make('button', {class: 'link', type: 'button', onclick: () => this.details.actions.search(`op:${type}`)},
              count > 1 ? `${type} \u00d7 ${count}` : type))))));
  }
}
