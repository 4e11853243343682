// Elements from parts. Texts become text nodes: nothing of a program is ever read as HTML.
const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'onclick') {
      element.addEventListener('click', value);
    } else if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
  return element;
}

function makeSvg(viewBox, d, attributes = {}) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', viewBox);
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(space, 'path');
  for (const [name, value] of Object.entries({d, fill: 'none', ...attributes})) path.setAttribute(name, value);
  svg.append(path);
  return svg;
}

function swatch(family) {
  return make('span', {class: 'swatch', style: `background: var(--f-${family[0]})`});
}

function tag(text, kind = '') {
  return make('span', {class: `tag ${kind}`}, text);
}

// "1 instruction", "2 instructions".
function counted(count, name) {
  return `${count.toLocaleString('en')} ${name}${count === 1 ? '' : 's'}`;
}
