// A page: its state, what changes it, and drawing again when it has changed. Pages differ in what
// they draw of a block (turnTo, select, selectVar, clear) and in what is said of it.
class PageViewer {
  // `state`: {selected, hovered, hits, marked, show}, and what else the page's painter looks at.
  constructor(state) {
    this.state = state;
    this.scenes = new Map();  // by block, of those that have been shown
    this.painter = new Painter(byId('canvas'));
    this.minimap = new Minimap(this.painter);
    this.actions = {
      select: (id, where) => this.select(id, where), selectVar: (v, model) => this.selectVar(v, model),
      show: (model) => this.show(model), step: (by) => this.step(by),
      search: (query) => this.search(query), clear: () => this.clear(),
    };
    this.frameMs = 0;
  }

  // `kind`: of the page, "plan" say.
  nameAs(title, kind) {
    document.title = `${title} \u2013 ${kind}`;
    byId('title').textContent = byId('title').title = title;
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

  // A block as a whole.
  show(model) {
    this.turnTo(model);
    this.clear();
    byId('announcer').textContent = `block ${model.block}`;
  }

  // Back to what runs the shown block.
  leave() {
    const {runner, parent} = this.model;
    if (parent) this.select(runner.id, {model: parent});
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
      this.showWhere();
    });
  }

  setHash(what) {
    const block = this.model.rank === 0 ? '' : `b=${this.model.block}`;
    history.replaceState(null, '', `#${[block, what].filter((part) => part !== '').join('&')}`);
  }

  // What "#i=12", "#v=name" or, in another block, "#b=1", "#b=1&i=12" names; {} for anything else.
  static parseHash(hash) {
    const parts = /^#(?:b=(\d+)(?:&|$))?(?:i=(\d+)|v=(.+))?$/.exec(hash);
    if (parts === null || hash === '#') return {};
    const [block, id, name] = parts.slice(1);
    try {
      return {
        block: Number(block ?? 0), whole: block !== undefined,
        id: id === undefined ? undefined : Number(id),
        name: name === undefined ? undefined : decodeURIComponent(name),
      };
    } catch {
      return {};  // a name that is no URI's
    }
  }

  search(query) {
    if (byId('query').value !== query) byId('query').value = query;
    const {hits, model} = this;
    hits.search(query);
    this.state.hits = hits.idsIn(model);
    byId('find').classList.toggle('active', query.trim() !== '');
    byId('find').classList.toggle('none', query.trim() !== '' && hits.list.length === 0);
    this.goToHit(hits.nearest(model, this.position));
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

  // `some`: by what can be left out, whether the block has any of it.
  showToggles(some) {
    for (const [what, shown] of Object.entries(this.state.show)) {
      const button = byId(`toggle-${what}`);
      button.setAttribute('aria-pressed', `${shown && some[what]}`);
      button.disabled = !some[what];
    }
  }

  zoom(factor, x, y) {
    this.camera.zoom(factor, x, y);
    this.changed();
  }
}

// "3 edges" with the number in bold; `plural`: what is added to the name of several.
function fact(count, name, plural = 's') {
  return make('span', {}, make('b', {}, count.toLocaleString('en')), ` ${name}${count === 1 ? '' : plural}`);
}
