// The page: state, what changes it, and drawing again when it has changed.
const byId = (id) => document.getElementById(id);

class Viewer {
  constructor(data) {
    this.model = new PlanModel(data);
    this.state = {
      selected: null, hovered: null, hits: [], marked: [],
      show: {kept: true, shrunk: data.show_shrunk, events: true, branches: !this.model.usesDevices},
    };
    this.hit = -1;  // position in state.hits
    this.camera = new Camera(this.model.order.length);
    this.painter = new Painter(byId('canvas'), this.model, this.camera);
    this.minimap = new Minimap(this.painter);
    this.index = new SearchIndex(this.model);
    this.details = new Details(byId('details'), this.model, {
      select: (id) => this.select(id), selectVar: (name) => this.selectVar(name),
      step: (by) => this.step(by), search: (query) => this.search(query), clear: () => this.clear(),
    });
    this.overview = new Overview(this.details);
    this.families = this.countFamilies();
    this.frameMs = 0;
  }

  start() {
    document.title = `${this.model.title} \u2013 plan`;
    byId('title').textContent = byId('title').title = this.model.title;
    this.fillFacts();
    fillHelp(byId('help'));
    this.painter.setLayout(this.state.show.branches);
    this.fillLegend();
    new Controls(this).connect();
    this.updateToggles();
    this.overview.showPlan(this.families);
    this.resize();
    this.followHash();
  }

  countFamilies() {
    const families = new Map();
    for (const {family, type} of this.model.instructions) {
      if (!families.has(family[0])) families.set(family[0], {family, size: 0, counts: new Map()});
      const entry = families.get(family[0]);
      ++entry.size;
      entry.counts.set(type, (entry.counts.get(type) ?? 0) + 1);
    }
    return [...families.values()].sort((a, b) => b.size - a.size).map((entry) => (
      {...entry, types: [...entry.counts].sort((a, b) => b[1] - a[1])}));
  }

  fillFacts() {
    const {model} = this;
    const fact = (count, name) => make('span', {}, make('b', {}, count.toLocaleString('en')), ` ${name}`);
    byId('facts').append(fact(model.order.length, 'instructions'),
        fact(model.edges.length - model.shrunkCount, 'edges'), fact(model.shrunkCount, 'shrunk'),
        ...(model.usesDevices ? [fact(model.streams.length - 1, 'streams'), fact(model.events.length, 'events')] : []));
  }

  fillLegend() {
    const families = this.families.map(({family, size}) =>
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

  resize() {
    this.painter.resize();
    this.minimap.render();
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
      this.showWhere();
    });
  }

  showWhere() {
    const {camera} = this;
    const {hidden} = this.painter.edges.drawn;
    byId('where').textContent =
        `${hidden > 0 ? `${hidden.toLocaleString('en')} edges in view, zoom in to draw them \u00b7 ` : ''}` +
        `rows ${camera.firstRow + 1}\u2013${camera.lastRow + 1} \u00b7 ` +
        `${Math.max(Math.round((camera.rowHeight / ROW_HEIGHT) * 100), 1)} %`;
  }

  select(id, keepHash = false) {
    const instruction = this.model.instructions[id];
    this.state.selected = id;
    this.state.marked = [];
    this.camera.reveal(instruction.position);
    const {boxX, boxWidth} = this.painter.layout.lane(id);
    this.camera.revealAcross(boxX - GUTTER_WIDTH - FIRST_ARC, boxX + boxWidth + 12);
    this.details.showInstruction(id);
    byId('announcer').textContent = `#${id} ${instruction.type}`;
    if (!keepHash) history.replaceState(null, '', `#i=${id}`);
    this.changed();
  }

  selectVar(name) {
    const v = this.model.vars.get(name);
    if (!v) return;
    this.state.selected = null;
    this.state.marked = [...new Set([...v.writers, ...v.readers].map((i) => i.id))];
    this.overview.showVar(name);
    const first = [...v.writers, ...v.readers][0];
    if (first) this.camera.reveal(first.position);
    history.replaceState(null, '', `#v=${encodeURIComponent(name)}`);
    this.changed();
  }

  clear() {
    this.state.selected = null;
    this.state.marked = [];
    this.overview.showPlan(this.families);
    history.replaceState(null, '', '#');
    this.changed();
  }

  // A page opened at "#i=12" or "#v=name" starts there.
  followHash() {
    const instruction = /^#i=(\d+)$/.exec(location.hash);
    const variable = /^#v=(.+)$/.exec(location.hash);
    if (instruction && Number(instruction[1]) < this.model.instructions.length) {
      this.select(Number(instruction[1]), true);
      this.camera.center(this.model.instructions[this.state.selected].position);
    } else if (variable) {
      this.selectVar(decodeURIComponent(variable[1]));
    }
  }

  // By position in order; the first on screen when none is chosen.
  step(by) {
    const {selected} = this.state;
    const {order, instructions} = this.model;
    if (order.length === 0) return;
    const position = selected === null ? this.camera.firstRow : instructions[selected].position + by;
    this.select(order[Math.min(Math.max(position, 0), order.length - 1)]);
  }

  // Along the first kept edge.
  follow(direction) {
    if (this.state.selected === null) return this.step(0);
    const instruction = this.model.instructions[this.state.selected];
    const edge = instruction[direction].find((e) => !e.shrunk);
    if (edge) this.select(direction === 'before' ? edge.from : edge.to);
  }

  search(query) {
    if (byId('query').value !== query) byId('query').value = query;
    this.state.hits = this.index.find(query);
    this.hit = -1;
    const {hits} = this.state;
    byId('find').classList.toggle('active', query.trim() !== '');
    byId('find').classList.toggle('none', query.trim() !== '' && hits.length === 0);
    if (hits.length > 0) {
      const from = this.state.selected === null ? this.camera.firstRow :
        this.model.instructions[this.state.selected].position;
      const next = hits.findIndex((id) => this.model.instructions[id].position >= from);
      this.goToHit(next < 0 ? 0 : next);
    }
    this.showHits(query);
    this.changed();
  }

  goToHit(index) {
    const {hits} = this.state;
    if (hits.length === 0) return;
    this.hit = (index + hits.length) % hits.length;
    this.select(hits[this.hit]);
    this.showHits(byId('query').value);
  }

  showHits(query) {
    const {length} = this.state.hits;
    byId('hits').textContent = query.trim() === '' ? '' : length === 0 ? 'none' : `${this.hit + 1} / ${length}`;
  }

  toggle(what) {
    this.state.show[what] = !this.state.show[what];
    if (what === 'branches') {
      this.painter.setLayout(this.state.show.branches);
      this.resize();
    }
    this.updateToggles();
    this.changed();
  }

  updateToggles() {
    const {model, state} = this;
    const some = {kept: model.edges.length > model.shrunkCount, shrunk: model.shrunkCount > 0,
      events: model.events.length > 0, branches: model.width > 1};
    for (const [what, shown] of Object.entries(state.show)) {
      const button = byId(`toggle-${what}`);
      button.setAttribute('aria-pressed', `${shown && some[what]}`);
      button.disabled = !some[what];
    }
  }

  zoom(factor, y) {
    this.camera.zoom(factor, y);
    this.changed();
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
