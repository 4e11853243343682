// Above the canvas: the way from the main block to the shown one, and a list of all blocks. Where
// there is one block only there is no bar.
class PathBar {
  // `unit`: what blocks are made of, "op" say. `actions`: show(block), select(id, {model}).
  constructor(element, blocks, unit, actions) {
    this.unit = unit;
    this.element = element;
    this.blocks = blocks;
    this.actions = actions;
    element.hidden = blocks.list.length === 1;
    this.list = make('select', {'aria-label': 'Blocks', 'title': 'All blocks'},
        blocks.list.map((model, rank) => make('option', {value: `${rank}`}, this.listText(model))));
    this.list.addEventListener('change', () => actions.show(blocks.list[Number(this.list.value)]));
    this.crumbs = make('ol');
    element.replaceChildren(this.crumbs, this.list);
  }

  listText({block, depth, runner, order}) {
    const by = runner ? [`#${runner.id} ${runner.type}`] : [];
    return '\u2003'.repeat(depth) + [`block ${block}`, ...by, counted(order.length, this.unit)].join(' \u00b7 ');
  }

  show(model) {
    if (this.element.hidden) return;
    const way = this.blocks.wayTo(model);
    this.crumbs.replaceChildren(...way.map((step, index) => make('li', {}, this.crumb(step, way[index + 1]))));
    this.list.value = `${model.rank}`;
    this.crumbs.lastChild.scrollIntoView({block: 'nearest', inline: 'end'});
  }

  // Back to a block is back to the instruction that was entered.
  crumb(model, next) {
    const by = model.runner ? make('span', {class: 'by'}, `#${model.runner.id} ${model.runner.type}`) : null;
    const text = [by, make('span', {}, `block ${model.block}`)];
    if (next === undefined) return make('span', {'class': 'crumb', 'aria-current': 'page'}, text);
    return make('button', {class: 'crumb', type: 'button',
      onclick: () => (next.runner ? this.actions.select(next.runner.id, {model}) : this.actions.show(model))}, text);
  }
}
