class Viewer extends PageViewer {
  constructor(data) {
    const program = new ProgramModel(data);
    const trains = program.blocks.some(({ops}) => ops.some(({part}) => part !== 'forward'));
    super({
      selected: null, hovered: null, hoveredEdge: null, hits: [], marked: [],
      show: {parts: trains, far: false},
    });
    Object.assign(this, {program, trains});
    this.hits = new Hits(new SearchIndex(program));
    this.details = new Details(byId('details'), program, this.actions);
    this.overview = new Overview(this.details);
    this.path = new PathBar(byId('path'), program, 'op', this.actions);
  }

  start() {
    this.nameAs(this.program.title, 'program');
    byId('query').placeholder = 'op type, variable, attribute or #index';
    fillHelp(byId('help'), KEYS, NOTES);
    if (this.program.main === undefined) return this.details.show(this.details.note('The program has no block.'), []);
    this.turnTo(this.program.main);
    this.overview.showBlock(this.scene);
    new Controls(this).connect();
    this.followHash();
  }

  get pageHeight() {
    return this.camera.height;
  }

  // The op that is looked at.
  get position() {
    return this.state.selected ?? 0;
  }

  // Draws that block from now on, with nothing chosen, where one has left it.
  turnTo(model) {
    if (this.scene?.model === model) return;
    if (!this.scenes.has(model)) this.scenes.set(model, new Scene(model));
    this.painter.scene = this.scenes.get(model);
    Object.assign(this.state, {selected: null, hovered: null, hoveredEdge: null, marked: [], hits: this.hits.idsIn(model)});
    this.fillFacts();
    this.fillLegend();
    this.updateToggles();
    this.path.show(model);
    this.resize();
  }

  // Into the block that the chosen op runs.
  enter() {
    const inner = this.model.ops[this.state.selected]?.inner[0];
    if (inner) this.show(inner);
  }

  fillFacts() {
    const {graph, placing} = this.scene;
    byId('facts').replaceChildren(fact(this.model.ops.length, 'op'), fact(graph.edges.length, 'edge'),
        ...(placing.farCount > 0 ? [fact(placing.farCount, 'far edge')] : []));
  }

  fillLegend() {
    const {families, parts} = this.scene;
    const button = (query, title, icon, count) =>
      make('button', {type: 'button', title: `Search ${title}`, onclick: () => this.search(query)},
          icon, title, make('span', {class: 'count'}, `${count}`));
    byId('legend').replaceChildren(
        make('div', {class: 'group families'}, this.state.show.parts ?
          parts.map(([part, count]) => button(`part:${part}`, part, partSwatch(part), count)) :
          families.map(({family, size}) => button(`family:${family[0]}`, family[1], swatch(family), size))),
        make('span', {class: 'group', id: 'where'}));
  }

  showWhere() {
    const hidden = this.painter.drawn.hidden ? 'zoom in for all edges \u00b7 ' : '';
    byId('where').textContent = `${hidden}${Math.round(this.camera.scale * 100)} %`;
  }

  // `model`: the block that has the op.
  select(id, {model = this.model} = {}) {
    this.turnTo(model);
    Object.assign(this.state, {selected: id, marked: []});
    this.camera.reveal(this.scene.placing.items[id]);
    this.details.showOp(model.ops[id], this.scene.graph.nodes[id]);
    byId('announcer').textContent = `#${id} ${model.ops[id].type}`;
    this.setHash(`i=${id}`);
    this.changed();
  }

  // Its users in the shown block are marked; where there are none, the block that has some is shown.
  selectVar(v) {
    if (!v) return;
    const users = [...v.writers, ...v.readers];
    if (users.length > 0 && !users.some(({model}) => model === this.model)) this.turnTo(users[0].model);
    const here = users.filter(({model}) => model === this.model);
    Object.assign(this.state, {selected: null, marked: [...new Set(here.map(({id}) => id))]});
    this.overview.showVar(v, this.model);
    if (here.length > 0) this.camera.reveal(this.scene.placing.items[here[0].id]);
    this.setHash(`v=${encodeURIComponent(v.name)}`);
    this.changed();
  }

  clear() {
    Object.assign(this.state, {selected: null, marked: []});
    this.overview.showBlock(this.scene);
    this.setHash('');
    this.changed();
  }

  // A page opened at "#i=12", "#v=name" or, in another block, "#b=1", "#b=1&i=12" starts there.
  followHash() {
    const {block, whole, id, name} = PageViewer.parseHash(location.hash);
    const model = this.program.blocks[block];
    if (model === undefined) return;
    if (id < model.ops.length) {
      this.select(id, {model});
    } else if (name !== undefined) {
      this.turnTo(model);
      this.selectVar(model.resolved.get(name) ?? model.vars.get(name));
    } else if (whole) {
      this.show(model);
    }
  }

  // By position in order; the first one when none is chosen.
  step(by) {
    this.selectAt(this.position + (this.state.selected === null ? 0 : by));
  }

  selectAt(position) {
    const {length} = this.model.ops;
    if (length > 0) this.select(Math.min(Math.max(position, 0), length - 1));
  }

  // Along the first edge that leads to an op.
  follow(direction) {
    if (this.state.selected === null) return this.step(0);
    const edges = this.scene.graph.nodes[this.state.selected][direction];
    const next = edges.map(({from, to}) => (direction === 'before' ? from : to)).find(({op}) => op !== null);
    if (next) this.select(next.index);
  }

  toggle(what) {
    if (byId(`toggle-${what}`).disabled) return;
    this.state.show[what] = !this.state.show[what];
    this.updateToggles();
    this.fillLegend();
    this.minimap.render(this.state);
    this.changed();
  }

  updateToggles() {
    this.showToggles({parts: this.trains, far: this.scene.placing.farCount > 0});
  }

  showWhole() {
    this.camera.showWhole();
    this.changed();
  }
}
