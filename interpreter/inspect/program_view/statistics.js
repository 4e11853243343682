// What the panel tells of a parameter's values.
class Statistics {
  constructor(program) {
    this.program = program;
  }

  // Infinities and NaN come as strings.
  number(value) {
    return typeof value === 'number' ? `${Number(value.toPrecision(6))}` : value ?? '-';
  }

  of(v) {
    return v.model === this.program.main ? this.program.statistics.get(v.name) : undefined;
  }

  // Of what is broken, "3 NaN, 1 infinite"; empty where nothing is.
  trouble({nan, infinite}) {
    return [nan > 0 ? `${nan.toLocaleString('en')} NaN` : '', infinite > 0 ? `${infinite.toLocaleString('en')} infinite` : '']
        .filter((text) => text !== '').join(', ');
  }

  rows(s) {
    const share = s.count > 0 ? `, ${this.number(s.zeros / s.count * 100)} %` : '';
    return [
      ['Read as', make('code', {}, s.type)],
      ['Elements', s.count.toLocaleString('en')],
      ['Min', this.number(s.min)],
      ['Max', this.number(s.max)],
      ['Mean', this.number(s.mean)],
      ['Deviation', this.number(s.deviation)],
      ['Zeros', `${s.zeros.toLocaleString('en')}${share}`],
      ['Not finite', this.trouble(s) === '' ? 'none' : make('span', {class: 'bad'}, this.trouble(s))],
    ];
  }

  histogram(s) {
    if (s.histogram.length === 0) return [];
    const most = Math.max(...s.histogram, 1);
    const space = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(space, 'svg');
    svg.setAttribute('class', 'histogram');
    svg.setAttribute('viewBox', `0 0 ${s.histogram.length} 1`);
    svg.setAttribute('preserveAspectRatio', 'none');
    s.histogram.forEach((count, index) => {
      const bar = document.createElementNS(space, 'rect');
      const height = count === 0 ? 0 : Math.max(count / most, 0.02);
      for (const [name, value] of Object.entries({x: index + 0.06, y: 1 - height, width: 0.88, height})) {
        bar.setAttribute(name, `${value}`);
      }
      svg.append(bar);
    });
    const ends = make('div', {class: 'scale'},
        [s.min, s.max].map((value) => make('span', {}, this.number(value))));
    return [svg, ends];
  }
}
