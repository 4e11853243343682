// The page: state, what changes it, and drawing again when it has changed.
class Viewer {
  constructor(data) {
    this.program = new ProgramModel(data);
    const {program} = this;
    this.state = {
      selected: null, hovered: null, hoveredEdge: null, hits: [], marked: [], selectedVar: null,
      show: {parts: false, far: false},
    };
    this.trains = program.blocks.some(({ops}) => ops.some(({part}) => part !== 'forward'));
    this.state.show.parts = this.trains;
    this.scenes = new Map();  // by block, of those that have been shown
    this.painter = new Painter(byId('canvas'));
    this.minimap = new Minimap(this.painter);
    this.hits = new Hits(new SearchIndex(program));
    const actions = {
      select: (id, where) => this.select(id, where), selectVar: (v) => this.selectVar(v),
      show: (model) => this.show(model), step: (by) => this.step(by),
      search: (query) => this.search(query), clear: () => this.clear(),
    };
    this.details = new Details(byId('details'), program, actions);
    this.overview = new Overview(this.details);
    this.path = new PathBar(byId('path'), program, 'op', actions);
    this.frameMs = 0;
  }

  start() {
    document.title = `${this.program.title} \u2013 program`;
    byId('title').textContent = byId('title').title = this.program.title;
    fillHelp(byId('help'));
    if (this.program.main === undefined) return this.details.show(this.details.note('The program has no block.'), []);
    this.turnTo(this.program.main);
    this.overview.showBlock(this.scene);
    new Controls(this).connect();
    this.followHash();
  }

  get scene() {
    return this.painter.scene;
  }

  get model() {
    return this.scene.model;
  }

  get camera() {
    return this.scene.camera;
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

  // A block as a whole.
  show(model) {
    this.turnTo(model);
    this.clear();
    byId('announcer').textContent = `block ${model.index}`;
  }

  // Into the block that the chosen op runs.
  enter() {
    const inner = this.model.ops[this.state.selected]?.inner[0];
    if (inner) this.show(inner);
  }

  // Back to the op that runs the shown block.
  leave() {
    const {runner, parent} = this.model;
    if (parent) this.select(runner.id, {model: parent});
  }

  fillFacts() {
    const {graph, placing} = this.scene;
    const fact = (count, name) => make('span', {}, make('b', {}, count.toLocaleString('en')),
        ` ${name}${count === 1 ? '' : 's'}`);
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

  resize() {
    this.painter.resize();
    this.minimap.render(this.state);
    this.changed();
  }

  changed() {
    if (this.frame !== undefined) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = undefined;
      const start = performance.now();
      this.painter.draw(this.state);
      this.minimap.draw(this.painter.ctx, this.state);
      this.frameMs = performance.now() - start;
      const hidden = this.painter.drawn.hidden ? 'zoom in for all edges \u00b7 ' : '';
      byId('where').textContent = `${hidden}${Math.round(this.camera.scale * 100)} %`;
    });
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

  setHash(what) {
    const block = this.model === this.program.main ? '' : `b=${this.model.index}`;
    history.replaceState(null, '', `#${[block, what].filter((part) => part !== '').join('&')}`);
  }

  // A page opened at "#i=12", "#v=name" or, in another block, "#b=1", "#b=1&i=12" starts there.
  followHash() {
    const [, block, id, name] = /^#(?:b=(\d+)(?:&|$))?(?:i=(\d+)|v=(.+))?$/.exec(location.hash) ?? [];
    const model = this.program.blocks[Number(block ?? 0)];
    if (model === undefined || location.hash.length < 2) return;
    if (id !== undefined && Number(id) < model.ops.length) {
      this.select(Number(id), {model});
    } else if (name !== undefined) {
      this.turnTo(model);
      this.selectVar(model.resolved.get(decodeURIComponent(name)) ?? model.vars.get(decodeURIComponent(name)));
    } else if (block !== undefined) {
      this.show(model);
    }
  }

  // By position in order; the first one when none is chosen.
  step(by) {
    this.selectAt(this.state.selected === null ? 0 : this.state.selected + by);
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

  search(query) {
    if (byId('query').value !== query) byId('query').value = query;
    const {hits, model} = this;
    hits.search(query);
    this.state.hits = hits.idsIn(model);
    byId('find').classList.toggle('active', query.trim() !== '');
    byId('find').classList.toggle('none', query.trim() !== '' && hits.list.length === 0);
    this.goToHit(hits.nearest(model, this.state.selected ?? 0));
    this.showHits(query);
    this.changed();
  }

  goToHit(index) {
    const {list} = this.hits;
    if (list.length === 0) return;
    this.hits.at = (index + list.length) % list.length;
    const {id, model} = list[this.hits.at];
    this.select(id, {model});
    this.showHits(byId('query').value);
  }

  showHits(query) {
    const {list: {length}, at} = this.hits;
    byId('hits').textContent = query.trim() === '' ? '' : length === 0 ? 'none' : `${at + 1} / ${length}`;
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
    const some = {parts: this.trains, far: this.scene.placing.farCount > 0};
    for (const [what, shown] of Object.entries(this.state.show)) {
      byId(`toggle-${what}`).setAttribute('aria-pressed', `${shown && some[what]}`);
      byId(`toggle-${what}`).disabled = !some[what];
    }
  }

  zoom(factor, x, y) {
    this.camera.zoom(factor, x, y);
    this.changed();
  }

  showWhole() {
    this.camera.showWhole();
    this.changed();
  }
}
