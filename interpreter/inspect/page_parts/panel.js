// The panel beside the canvas: a head and sections.
class Panel {
  // `actions`: select(id, {model}), selectVar(variable), show(model), step(by), search(query), clear().
  constructor(element, actions) {
    this.element = element;
    this.actions = actions;
  }

  show(head, sections) {
    this.element.replaceChildren(head, ...sections.filter((section) => section !== null));
    this.element.scrollTop = 0;
  }

  section(title, content, count) {
    return make('section', {},
        make('h3', {}, title, count === undefined ? null : make('span', {class: 'count'}, `${count}`)), content);
  }

  facts(rows) {
    return make('dl', {}, rows.filter(([, value]) => value !== null && value !== undefined)
        .flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
  }

  note(text) {
    return make('p', {class: 'note'}, text);
  }

  // Of the op or instruction at `position` of `length`; `where` says of what, and what else there is.
  stepHead({id, type, family}, position, length, where) {
    const step = (label, by, icon, enabled) =>
      make('button', {class: 'step', type: 'button', 'aria-label': label, title: label, disabled: !enabled,
        onclick: () => this.actions.step(by)}, icon);
    return make('div', {class: 'head'},
        make('div', {class: 'head-row'}, swatch(family),
            make('h2', {}, make('span', {class: 'id'}, `#${id}`), type),
            step('Before in order', -1, '\u2191', position > 0),
            step('Next in order', 1, '\u2193', position + 1 < length)),
        make('p', {class: 'sub'}, `${position + 1} of ${length} ${where}`));
  }

  varHead(name, note) {
    return make('div', {class: 'head'},
        make('div', {class: 'head-row'}, make('h2', {class: 'mono'}, name),
            make('button', {class: 'step', type: 'button', 'aria-label': 'Close', title: 'Close (Esc)',
              onclick: () => this.actions.clear()}, '\u00d7')),
        make('p', {class: 'sub'}, note));
  }
}
