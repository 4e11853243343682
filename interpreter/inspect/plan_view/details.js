// The panel beside the canvas: an instruction, a variable, or the plan when nothing is chosen.
const KIND_NAMES = {
  raw: 'read after write', war: 'write after read', waw: 'write after write',
  read: 'read', communication: 'communication', coalesce: 'coalesced memory', sequential: 'program order',
  stream: 'stream order',
};

// Ends of the sentence "#3 relu ..."; the variable stands between the two parts.
const KIND_SENTENCES = {
  raw: ['writes', ', which this reads'],
  war: ['reads', ', which this overwrites'],
  waw: ['writes', ', which this overwrites'],
  read: ['fills the inputs of all that has no other predecessor'],
  communication: ['communicates; such instructions keep their order on all sides'],
  coalesce: ['accesses', ', parts of which lie in one piece of memory'],
  sequential: ['comes before it in the program, whose order was asked for'],
  stream: ['is launched before it on the same stream'],
};

class Details extends Panel {
  constructor(element, model, actions) {
    super(element, actions);
    this.model = model;      // of the block that is shown
    this.blocks = new BlockDetails(this);
  }

  showInstruction(id) {
    const i = this.model.instructions[id];
    this.show(this.instructionHead(i), [
      this.section('Runs as', this.runFacts(i)),
      ...this.blocks.instructionSections(i),
      this.argumentSection('Inputs', i.inputs),
      this.argumentSection('Outputs', i.outputs, i),
      this.memorySection(i),
      this.attributeSection(i),
      this.edgeSection('Runs after', i.before, (edge) => this.edgeRow(edge, edge.from, this.why(edge))),
      this.edgeSection('Waited for by', i.after, (edge) => this.edgeRow(edge, edge.to, this.kindLine(edge))),
    ]);
  }

  instructionHead(i) {
    const origin = i.op_index >= 0 ? `op ${i.op_index} of the program` : 'inserted by the analysis';
    return this.stepHead(i, i.position, this.model.order.length, `in order \u00b7 ${origin}`);
  }

  runFacts(i) {
    const stream = this.model.streamOf(i);
    return this.facts([
      ['Kernel', i.kernel === 'any' ? 'one for all dtypes' : make('code', {}, i.kernel)],
      ['Part', this.model.trains ? i.part : null],
      ['Place', i.place],
      ['Stream', this.model.usesDevices ? `${stream.name} (${i.stream})` : null],
      ['Queue', `${i.queue}${i.priority === 0 ? '' : `, priority ${i.priority}`}`],
      ['Shapes', i.dynamic_shape ? 'inferred in every run' : null],
      ['Records', i.record < 0 ? null : this.recordText(i)],
      ['Waits for', i.after_events.length === 0 ? null : i.after_events.map((wait) => this.waitRow(wait))],
    ]);
  }

  recordText(i) {
    const {waiters} = this.model.events[i.record];
    return [tag(`event ${i.record}`, 'event'), waiters.length === 0 ? ' nobody waits for it' : ' for ',
      ...this.joined(waiters.map(({instruction}) => this.instructionLink(instruction)))];
  }

  waitRow({event, previous_run: previousRun, blocks_host: blocks}) {
    const recorder = this.model.instructions[this.model.events[event].recorder];
    return make('div', {}, tag(`event ${event}`, 'event'), ' of ',
        recorder ? this.instructionLink(recorder) : 'nobody',
        previousRun ? ' in the run before' : '', blocks ? '; the thread blocks' : '; the stream waits');
  }

  argumentSection(title, slots, instruction = null) {
    const shown = Object.entries(slots).filter(([slot]) => slot !== HIDDEN_SLOT);
    let index = 0;
    const rows = shown.flatMap(([slot, args]) => args.map((name, arg) => this.argumentRow(
        args.length > 1 ? `${slot}[${arg}]` : slot, this.argument(name, instruction, index++))));
    return rows.length === 0 ? null : this.section(title, rows, rows.length);
  }

  argumentRow(slot, what) {
    return make('div', {class: 'argument'}, make('div', {class: 'row'},
        make('span', {class: 'slot'}, slot), make('div', {class: 'what'}, what)));
  }

  // `index`: of the output of `instruction`; its kernel may make more or less than declared.
  argument(name, instruction = null, index = 0) {
    if (name === EMPTY) return [make('span', {class: 'note'}, 'none')];
    const v = this.model.vars.get(name);
    if (!v) return [make('span', {class: 'mono'}, name)];
    const made = instruction?.output_dtypes[index];
    const layout = instruction ? instruction.output_layouts[index] : v.layout;
    return [this.varLink(name), make('div', {class: 'type'},
        make('code', {}, this.model.typeOf(v)),
        v.kind === 'lod_tensor' && made && made !== v.dtype && made !== 'undefined' ? tag(`made as ${made}`) : null,
        layout !== 'plain' ? tag(layout) : null,
        this.blocks.captureNote(name),
        v.constant ? tag('constant') : v.persistable ? tag('persistable') : null,
        this.model.usesDevices ? tag(`on ${v.place}`) : null,
        v.storage !== name ? tag(`memory of ${v.storage}`, 'share') : null)];
  }

  memorySection(i) {
    if (i.share.length + i.frees.length + i.counts.length === 0) return null;
    const links = (names) => make('div', {class: 'chips'}, names.map((name) => this.varLink(name)));
    const pairs = i.share.map(({input, output, kind}) => make('div', {},
        this.varLink(output), kind === 'view' ? ' is a view of ' : ' is written over ', this.varLink(input)));
    const counted = i.counts.filter((name) => !i.frees.includes(name));
    return this.section('Memory', this.facts([
      [tag('shares', 'share'), pairs.length > 0 ? pairs : null],
      [tag('frees', 'free'), i.frees.length > 0 ? links(i.frees) : null],
      ['counts down', counted.length > 0 ? links(counted) : null],
    ]));
  }

  attributeSection(i) {
    const attributes = Object.entries(i.attrs ?? {});
    if (attributes.length === 0) return null;
    return this.section('Attributes',
        this.facts(attributes.map(([name, value]) => [name, make('code', {}, value)])), attributes.length);
  }

  edgeSection(title, edges, row) {
    const kept = edges.filter((edge) => !edge.shrunk).length;
    if (edges.length === 0) {
      return this.section(title, make('p', {class: 'note'}, title === 'Runs after' ?
        'Nothing: it can start at once.' : 'Nothing.'));
    }
    const ordered = [...edges].sort((a, b) => a.shrunk - b.shrunk);
    return this.section(title, ordered.map(row),
        kept === edges.length ? kept : `${kept} kept, ${edges.length - kept} shrunk`);
  }

  edgeRow(edge, other, ...lines) {
    const icon = makeSvg('0 0 10 34', 'M5 0 V26 M1 22 L5 28 L9 22', {
      'stroke': `var(${edgeColorName(edge.kind)})`, 'stroke-width': '1.8',
      'stroke-dasharray': edge.shrunk ? '4 3' : 'none',
    });
    return make('div', {class: 'edge', 'data-kind': edge.kind, 'data-shrunk': `${edge.shrunk}`}, icon,
        make('div', {}, make('div', {class: 'row'},
            this.instructionLink(this.model.instructions[other]),
            tag(edge.shrunk ? 'shrunk' : 'kept', edge.shrunk ? 'shrunk' : '')), ...lines));
  }

  kindLine(edge) {
    const of = edge.var === '' ? [] : [' of ', this.varLink(edge.var)];
    return make('div', {class: 'why'}, KIND_NAMES[edge.kind], ...of);
  }

  // Why `to` comes after `from`, and what makes it so.
  why(edge) {
    const [verb, rest] = KIND_SENTENCES[edge.kind];
    const sentence = edge.var === '' ? [verb] : [`${verb} `, this.varLink(edge.var), rest ?? ''];
    return make('div', {class: 'why'},
        make('div', {}, ...sentence, ` (${KIND_NAMES[edge.kind]})`), this.means(edge));
  }

  means(edge) {
    const parts = [];
    if (this.model.usesDevices) {
      parts.push(`Run type ${edge.run_type}`, edge.memory ? '' : ', it need only have been issued',
          edge.host_reads ? ', read while this is issued' : '', ': ');
    }
    if (edge.shrunk) {
      const path = this.model.pathAround(edge);
      parts.push(parts.length > 0 ? 'implied' : 'Implied');
      if (path === null) return make('div', {}, ...parts, ' by other orders.');
      const steps = path.length > 7 ? [...path.slice(0, 3), null, ...path.slice(-3)] : path;
      const links = steps.map((i) => (i === null ? '\u2026' : this.instructionLink(i, {short: true})));
      return make('div', {}, ...parts, ' by ', ...this.joined(links, ' \u2192 '), '.');
    }
    if (edge.event !== undefined) return make('div', {}, ...parts, tag(`event ${edge.event}`, 'event'));
    if (!this.model.usesDevices) return null;
    const [from, to] = [edge.from, edge.to].map((id) => this.model.instructions[id]);
    const same = from.stream === to.stream && from.stream > 0;
    return make('div', {}, ...parts, same ? `both on stream ${this.model.streamOf(to).name}` :
      edge.run_type === 'direct' ? 'issued in this order' : 'an event that is waited for already covers it');
  }

  joined(links, separator = ', ') {
    return links.flatMap((link, index) => (index === 0 ? [link] : [separator, link]));
  }

  instructionLink(instruction, {short = false, model = this.model} = {}) {
    return make('button', {class: 'link', type: 'button', title: instruction.type,
      onclick: () => this.actions.select(instruction.id, {model})},
    short ? `#${instruction.id}` : `#${instruction.id} ${instruction.type}`);
  }

  varLink(name, model = this.model) {
    return make('button', {class: 'link mono', type: 'button',
      onclick: () => this.actions.selectVar(name, model)}, name);
  }
}
