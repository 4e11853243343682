class Viewer extends PageViewer {
  constructor(data) {
    const blocks = new Blocks(data);
    super({
      selected: null, hovered: null, hits: [], marked: [],
      show: {kept: true, shrunk: data.show_shrunk, events: true, branches: !blocks.main.usesDevices},
    });
    this.blocks = blocks;
    this.hits = new Hits(new SearchIndex(blocks));
    this.details = new Details(byId('details'), blocks.main, this.actions);
    this.overview = new Overview(this.details);
    this.path = new PathBar(byId('path'), blocks, 'instruction', this.actions);
  }

  start() {
    this.nameAs(this.blocks.title, 'plan');
    fillHelp(byId('help'), KEYS, NOTES);
    this.turnTo(this.blocks.main);
    this.overview.showBlock(this.scene.families);
    new Controls(this).connect();
    this.followHash();
  }

  get pageHeight() {
    return this.camera.bodyHeight;
  }

  // The row that is looked at.
  get position() {
    const {selected} = this.state;
    return selected === null ? this.camera.firstRow : this.model.instructions[selected].position;
  }

  // Draws that block from now on, with nothing chosen, where one has left it.
  turnTo(model) {
    if (this.scene?.model === model) return;
    if (!this.scenes.has(model)) this.scenes.set(model, new Scene(model));
    this.painter.show(this.scenes.get(model), this.state.show.branches);
    this.details.model = model;
    Object.assign(this.state, {selected: null, hovered: null, marked: [], hits: this.hits.idsIn(model)});
    this.fillFacts();
    this.fillLegend();
    this.updateToggles();
    this.path.show(model);
    this.resize();
  }

  // Into the block that the chosen instruction runs.
  enter() {
    const inner = this.model.instructions[this.state.selected]?.inner;
    if (inner) this.show(inner);
  }

  fillFacts() {
    const {model} = this;
    byId('facts').replaceChildren(fact(model.order.length, 'instruction'),
        fact(model.edges.length - model.shrunkCount, 'edge'), fact(model.shrunkCount, 'shrunk', ''),
        ...(model.usesDevices ? [fact(model.streams.length - 1, 'stream'), fact(model.events.length, 'event')] : []));
  }

  fillLegend() {
    const families = this.scene.families.map(({family, size}) =>
      make('button', {type: 'button', title: `Search ${family[1]}`, onclick: () => this.search(`family:${family[0]}`)},
          swatch(family), family[1], make('span', {class: 'count'}, `${size}`)));
    const stroke = (color, name, dash, title) => make('span', {class: 'stroke', title},
        makeSvg('0 0 22 8', 'M1 4H21',
            {'stroke': `var(--${color})`, 'stroke-width': 2, 'stroke-dasharray': dash}), name);
    byId('legend').replaceChildren(
        make('div', {class: 'group families'}, families),
        make('div', {class: 'group'}, stroke('raw', 'RAW', 'none', 'read after write'),
            stroke('war', 'WAR', 'none', 'write after read'), stroke('waw', 'WAW', 'none', 'write after write'),
            stroke('implicit', 'other', 'none', 'implicit orders: communication, stream, ...'),
            stroke('text-3', 'shrunk', '4 3', 'implied by other edges'),
            this.model.usesDevices ? stroke('event', 'event', 'none', 'recorded and waited for') : null),
        make('span', {class: 'group', id: 'where'}));
  }

  showWhere() {
    const {camera} = this;
    const {hidden} = this.painter.edges.drawn;
    byId('where').textContent =
        `${hidden > 0 ? `${hidden.toLocaleString('en')} edges in view, zoom in to draw them \u00b7 ` : ''}` +
        `${camera.rows === 0 ? 'no rows' : `rows ${camera.firstRow + 1}\u2013${camera.lastRow + 1}`} \u00b7 ` +
        `${Math.max(Math.round((camera.rowHeight / ROW_HEIGHT) * 100), 1)} %`;
  }

  // `model`: the block that has the instruction.
  select(id, {model = this.model} = {}) {
    this.turnTo(model);
    const instruction = this.model.instructions[id];
    this.state.selected = id;
    this.state.marked = [];
    this.camera.reveal(instruction.position);
    const {boxX, boxWidth} = this.painter.layout.lane(id);
    this.camera.revealAcross(boxX - GUTTER_WIDTH - FIRST_ARC, boxX + boxWidth + 12);
    this.details.showInstruction(id);
    byId('announcer').textContent = `#${id} ${instruction.type}`;
    this.setHash(`i=${id}`);
    this.changed();
  }

  selectVar(name, model = this.model) {
    const v = model.vars.get(name);
    if (!v) return;
    this.turnTo(model);
    this.state.selected = null;
    this.state.marked = [...new Set([...v.writers, ...v.readers].map((i) => i.id))];
    this.overview.showVar(name);
    const first = [...v.writers, ...v.readers][0];
    if (first) this.camera.reveal(first.position);
    this.setHash(`v=${encodeURIComponent(name)}`);
    this.changed();
  }

  clear() {
    this.state.selected = null;
    this.state.marked = [];
    this.overview.showBlock(this.scene.families);
    this.setHash('');
    this.changed();
  }

  // A page opened at "#i=12", "#v=name" or, in another block, "#b=1", "#b=1&i=12" starts there.
  followHash() {
    const {block, whole, id, name} = PageViewer.parseHash(location.hash);
    const model = this.blocks.byNumber.get(block);
    if (model === undefined) return;
    if (id < model.instructions.length) {
      this.select(id, {model});
      this.camera.center(model.instructions[this.state.selected].position);
    } else if (name !== undefined) {
      this.selectVar(name, model);
    } else if (whole) {
      this.show(model);
    }
  }

  // By position in order; the first on screen when none is chosen.
  step(by) {
    this.selectAt(this.position + (this.state.selected === null ? 0 : by));
  }

  // The instruction at a position in order, or the first or last one.
  selectAt(position) {
    const {order} = this.model;
    if (order.length > 0) this.select(order[Math.min(Math.max(position, 0), order.length - 1)]);
  }

  // Along the first kept edge.
  follow(direction) {
    if (this.state.selected === null) return this.step(0);
    const instruction = this.model.instructions[this.state.selected];
    const edge = instruction[direction].find((e) => !e.shrunk);
    if (edge) this.select(direction === 'before' ? edge.from : edge.to);
  }

  toggle(what) {
    this.state.show[what] = !this.state.show[what];
    if (what === 'branches') {
      this.painter.show(this.scene, this.state.show.branches);
      this.resize();
    }
    this.updateToggles();
    this.changed();
  }

  updateToggles() {
    const {model} = this;
    this.showToggles({kept: model.edges.length > model.shrunkCount, shrunk: model.shrunkCount > 0,
      events: model.events.length > 0, branches: model.width > 1});
  }

  zoomTo(rowHeight) {
    this.zoom(rowHeight / this.camera.rowHeight);
    if (this.state.selected !== null) this.camera.center(this.model.instructions[this.state.selected].position);
  }

  // The instruction whose row is at a point of the canvas, or null.
  instructionAt(x, y) {
    if (y < HEAD_HEIGHT || this.minimap.contains(x, y)) return null;
    const row = this.camera.rowAt(y);
    return row >= 0 && row < this.model.order.length ? this.model.order[row] : null;
  }
}
