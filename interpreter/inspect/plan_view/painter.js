// What the canvas shows: lanes, boxes, the columns beside them. The state it is drawn from is the
// viewer's; nothing here changes it.
const FONTS = {};
const CANVAS_COLORS = ['surface', 'sunken', 'line', 'line-strong', 'text', 'text-2', 'text-3', 'accent',
  'accent-soft', 'hit', 'hit-strong', 'raw', 'war', 'waw', 'implicit', 'event', 'free', 'share', 'lane',
  'lane-device', 'stripe', 'tint', 'part-forward', 'part-backward', 'part-update', 'part-schedule',
  ...FAMILIES.map(([key]) => `f-${key}`), 'f-other'].map((name) => `--${name}`);

function boxHeight(rowHeight) {
  if (rowHeight < 6) return Math.max(rowHeight * 0.8, 0.5);
  return rowHeight < TEXT_ROW_HEIGHT ? rowHeight - 2 : Math.min(rowHeight - 4, rowHeight * 0.72);
}

class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.ctx = canvas.getContext('2d');
    this.texts = new Texts(this.ctx);
    this.readTheme();
  }

  // Draws `scene` from now on. `branches`: see Layout.
  show(scene, branches) {
    this.scene = scene;
    scene.arrange(branches, (type, small) => {
      this.ctx.font = small ? FONTS.narrow : FONTS.box;
      return this.measure(type);
    });
  }

  get model() {
    return this.scene.model;
  }

  get camera() {
    return this.scene.camera;
  }

  get layout() {
    return this.scene.layout;
  }

  get edges() {
    return this.scene.edges;
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    this.colors = Object.fromEntries(
        CANVAS_COLORS.map((name) => [name, style.getPropertyValue(name).trim()]));
    const sans = style.getPropertyValue('--sans');
    const mono = style.getPropertyValue('--mono');
    Object.assign(FONTS, {
      box: `600 12px ${sans}`, row: `12px ${sans}`, mono: `11.5px ${mono}`, small: `10.5px ${sans}`,
      head: `600 12px ${sans}`, narrow: `600 11px ${sans}`,
    });
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.camera.width = this.canvas.clientWidth;
    this.camera.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.camera.width * ratio);
    this.canvas.height = Math.round(this.camera.height * ratio);
    this.ratio = ratio;
    const beside = this.camera.width - this.layout.listX - MINIMAP_WIDTH;
    this.listWidth = Math.max(LIST_WIDTH, beside);
    this.camera.contentWidth = this.layout.listX + this.listWidth + MINIMAP_WIDTH;
    this.camera.clamp();
  }

  draw(state) {
    const {ctx, camera, colors} = this;
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    ctx.fillStyle = colors['--surface'];
    ctx.fillRect(0, 0, camera.width, camera.height);
    ctx.save();
    ctx.translate(-camera.x, 0);
    this.drawLanes();
    this.drawStripes(state);
    this.edges.drawAll(ctx, colors, state.show, state.selected !== null);
    if (state.selected !== null) {
      this.edges.drawOf(ctx, colors, state.show, this.model.instructions[state.selected]);
    } else if (state.hovered !== null) {
      this.edges.drawOf(ctx, colors, state.show, this.model.instructions[state.hovered]);
    }
    this.drawRows(state);
    if (state.show.events) this.edges.drawEvents(ctx, colors, state.selected);
    this.drawGutter(state);
    this.drawHead();
    ctx.restore();
  }

  drawLanes() {
    const {ctx, camera, colors} = this;
    for (const group of this.layout.groups) {
      ctx.fillStyle = colors[group.index === 0 ? '--lane' : '--lane-device'];
      ctx.fillRect(group.x, HEAD_HEIGHT, group.width, camera.height);
      ctx.fillStyle = colors['--line'];
      ctx.fillRect(group.x, 0, 1, camera.height);
      ctx.fillRect(group.x + group.width, 0, 1, camera.height);
    }
  }

  // Behind whole rows: hits of the search, users of the chosen variable, hovered and chosen row.
  drawStripes(state) {
    const {ctx, camera, colors} = this;
    const right = camera.contentWidth;
    const height = Math.max(camera.rowHeight, 1);
    const stripe = (id, color, alpha = 1) => {
      const y = camera.rowY(this.model.instructions[id].position);
      if (y + height < HEAD_HEIGHT || y > camera.height) return;
      ctx.fillStyle = color;
      ctx.globalAlpha = alpha;
      ctx.fillRect(0, y, right, height);
      ctx.globalAlpha = 1;
    };
    if (state.hovered !== null) stripe(state.hovered, colors['--stripe']);
    for (const id of state.hits) stripe(id, colors['--hit'], 0.4);
    for (const id of state.marked) stripe(id, colors['--accent-soft']);
    if (state.selected !== null) stripe(state.selected, colors['--accent-soft']);
  }

  drawRows(state) {
    const {camera, model} = this;
    const related = this.relatedTo(state.selected);
    for (let position = camera.firstRow; position <= camera.lastRow; ++position) {
      const instruction = model.instructions[model.order[position]];
      this.drawBox(instruction, state, related);
      if (camera.showsText) this.drawList(instruction);
    }
  }

  relatedTo(id) {
    if (id === null) return null;
    const {before, after} = this.model.instructions[id];
    return new Set([id, ...before.map((edge) => edge.from), ...after.map((edge) => edge.to)]);
  }

  drawBox(instruction, state, related) {
    const {ctx, camera, colors} = this;
    const lane = this.layout.lane(instruction.id);
    const height = boxHeight(camera.rowHeight);
    const y = camera.rowY(instruction.position) + (camera.rowHeight - height) / 2;
    const color = colors[`--f-${instruction.family[0]}`];
    ctx.fillStyle = color;
    if (!camera.showsText) {
      ctx.fillRect(lane.boxX, y, lane.boxWidth, height);
      return;
    }
    if (instruction.inner) this.drawStack(lane, y, height, color);
    const path = new Path2D();
    path.roundRect(lane.boxX, y, lane.boxWidth, height, 4);
    ctx.fillStyle = colors['--surface'];
    ctx.fill(path);
    ctx.fillStyle = color;
    ctx.globalAlpha = Number(colors['--tint']);
    ctx.fill(path);
    ctx.globalAlpha = 1;
    ctx.save();
    ctx.clip(path);
    ctx.fillRect(lane.boxX, y, 4, height);
    ctx.restore();
    const chosen = instruction.id === state.selected;
    if (chosen || related?.has(instruction.id) || instruction.id === state.hovered) {
      ctx.strokeStyle = chosen ? colors['--accent'] : color;
      ctx.lineWidth = chosen ? 2 : 1;
      ctx.stroke(path);
    }
    const room = lane.boxWidth - 18 - this.drawMarks(instruction, lane, y + height / 2);
    ctx.fillStyle = colors['--text'];
    ctx.font = this.layout.smallBoxes ? FONTS.narrow : FONTS.box;
    ctx.fillText(this.fit(instruction.type, room), lane.boxX + 12, y + height / 2 + 4);
  }

  // The box of an instruction that runs a block has others behind it.
  drawStack(lane, y, height, color) {
    const {ctx, colors} = this;
    for (const shift of [5, 2.5]) {
      const path = new Path2D();
      path.roundRect(lane.boxX + shift, y + shift, lane.boxWidth, height, 4);
      ctx.fillStyle = colors['--surface'];
      ctx.fill(path);
      ctx.strokeStyle = color;
      ctx.lineWidth = 1;
      ctx.globalAlpha = 0.55;
      ctx.stroke(path);
      ctx.globalAlpha = 1;
    }
  }

  // At the right end of a box the block it runs and what it records; returns the room taken.
  drawMarks(instruction, lane, y) {
    const end = lane.boxX + lane.boxWidth;
    const block = instruction.inner ? this.drawBlockMark(instruction.inner.block, end, y) : 0;
    return block + (instruction.record < 0 ? 0 : this.drawEventMark(instruction, lane, end - block, y));
  }

  drawBlockMark(block, end, y) {
    const {ctx, colors} = this;
    ctx.font = FONTS.small;
    const text = `b${block}`;
    const width = this.measure(text) + 8;
    ctx.fillStyle = colors['--accent-soft'];
    ctx.beginPath();
    ctx.roundRect(end - width - 4, y - 7, width, 14, 4);
    ctx.fill();
    ctx.fillStyle = colors['--accent'];
    ctx.fillText(text, end - width, y + 4);
    return width + 6;
  }

  drawEventMark(instruction, lane, end, y) {
    const {ctx} = this;
    ctx.font = this.layout.smallBoxes ? FONTS.narrow : FONTS.box;
    const room = end - lane.boxX - 20 - this.measure(instruction.type);
    ctx.font = FONTS.small;
    ctx.fillStyle = this.colors['--event'];
    const text = `e${instruction.record}`;
    const fits = this.measure(text) + 14 < room;
    const width = fits ? this.measure(text) : 0;
    const x = end - width - (fits ? 8 : 2);
    if (fits) ctx.fillText(text, x, y + 4);
    ctx.beginPath();
    ctx.arc(x - 7, y, 3, 0, 2 * Math.PI);
    ctx.fill();
    return width + 16;
  }

  // The numbers; they stay where the lanes are moved sideways.
  drawGutter(state) {
    const {ctx, camera, colors, model} = this;
    if (camera.x > 0) {
      ctx.fillStyle = colors['--surface'];
      ctx.fillRect(camera.x, HEAD_HEIGHT, GUTTER_WIDTH, camera.height);
      ctx.fillStyle = colors['--line'];
      ctx.fillRect(camera.x + GUTTER_WIDTH, 0, 1, camera.height);
    }
    if (model.trains) this.drawParts();
    if (state.selected !== null) {
      ctx.fillStyle = colors['--accent'];
      ctx.fillRect(camera.x, camera.rowY(model.instructions[state.selected].position), 3, Math.max(camera.rowHeight, 1));
    }
    if (!camera.showsText) return;
    ctx.font = FONTS.mono;
    ctx.fillStyle = colors['--text-3'];
    ctx.textAlign = 'right';
    for (let position = camera.firstRow; position <= camera.lastRow; ++position) {
      const y = camera.rowY(position) + camera.rowHeight / 2 + 4;
      ctx.fillText(`${model.order[position]}`, camera.x + GUTTER_WIDTH - 12, y);
    }
    ctx.textAlign = 'left';
  }

  // A bar beside the numbers: forward, backward and update of a training program.
  drawParts() {
    const {ctx, camera, colors, model} = this;
    for (let position = camera.firstRow; position <= camera.lastRow; ++position) {
      ctx.fillStyle = colors[`--part-${model.instructions[model.order[position]].part}`];
      ctx.fillRect(camera.x + GUTTER_WIDTH - 6, camera.rowY(position), 4, Math.max(camera.rowHeight, 1));
    }
  }

  // What is written and what happens to memory.
  drawList(instruction) {
    const {camera} = this;
    const y = camera.rowY(instruction.position) + camera.rowHeight / 2 + 4;
    const split = Math.round(this.listWidth * 0.56);
    this.drawWrites(instruction, y, split - 20);
    this.drawMemory(instruction, this.layout.listX + split, y, this.listWidth - split - 12);
  }

  drawWrites(instruction, y, room) {
    const {ctx, colors, model} = this;
    const more = instruction.writes.length - 1;
    const name = instruction.writes[0] ?? '';
    const v = model.vars.get(name);
    const type = `${v ? model.typeOf(v) : ''}${more > 0 ? `  +${more}` : ''}`;
    ctx.font = FONTS.mono;
    const text = this.fit(name, Math.max(room * 0.45, room - this.measure(type) - 12));
    const used = this.measure(text) + 12;
    ctx.fillStyle = colors['--text'];
    ctx.fillText(text, this.layout.listX, y);
    ctx.fillStyle = colors['--text-3'];
    ctx.fillText(this.fit(type, room - used), this.layout.listX + used, y);
  }

  drawMemory(instruction, x, y, room) {
    const {ctx, colors} = this;
    const end = x + room;
    const put = (font, color, text) => {
      if (x >= end - 20) return;
      ctx.font = font;
      ctx.fillStyle = colors[color];
      const fitted = this.fit(text, end - x);
      ctx.fillText(fitted, x, y);
      x += this.measure(fitted) + 6;
    };
    for (const {input, kind} of instruction.share) {
      put(FONTS.row, '--share', kind === 'view' ? 'view of' : 'in place of');
      put(FONTS.mono, '--text-2', input);
      if (instruction.frees.includes(input)) put(FONTS.row, '--free', 'freed');
      x += 6;
    }
    const shared = instruction.share.map(({input}) => input);
    const others = instruction.frees.filter((name) => !shared.includes(name));
    if (others.length > 0) {
      put(FONTS.row, '--free', 'frees');
      put(FONTS.mono, '--text-2', others.join(', '));
    }
  }

  drawHead() {
    const {ctx, camera, colors} = this;
    ctx.fillStyle = colors['--surface'];
    ctx.fillRect(camera.x, 0, camera.width, HEAD_HEIGHT);
    ctx.fillStyle = colors['--line'];
    ctx.fillRect(camera.x, HEAD_HEIGHT - 1, camera.width, 1);
    for (const group of this.layout.groups) this.drawGroupHead(group);
    ctx.font = FONTS.head;
    ctx.fillStyle = colors['--text-2'];
    const split = Math.round(this.listWidth * 0.56);
    ctx.fillText('Writes', this.layout.listX, 25);
    ctx.fillText('Memory', this.layout.listX + split, 25);
    if (camera.x > 0) {
      ctx.fillStyle = colors['--surface'];
      ctx.fillRect(camera.x, 0, GUTTER_WIDTH, HEAD_HEIGHT - 1);
      ctx.fillStyle = colors['--text-2'];
    }
    ctx.textAlign = 'right';
    ctx.fillText('#', camera.x + GUTTER_WIDTH - 12, 25);
    ctx.textAlign = 'left';
  }

  drawGroupHead(group) {
    const {ctx, colors} = this;
    const {stream, size} = group;
    ctx.fillStyle = colors['--line'];
    ctx.fillRect(group.x, 0, 1, HEAD_HEIGHT);
    ctx.fillRect(group.x + group.width, 0, 1, HEAD_HEIGHT);
    const x = group.x + 14;
    const room = group.width - 22;
    ctx.font = FONTS.head;
    ctx.fillStyle = colors['--text'];
    const name = this.fit(stream.name, room);
    ctx.fillText(name, x, 18);
    const used = this.measure(name) + 8;
    ctx.font = FONTS.row;
    ctx.fillStyle = colors['--text-2'];
    if (stream.name !== stream.place) ctx.fillText(this.fit(stream.place, room - used), x + used, 18);
    ctx.font = FONTS.small;
    ctx.fillStyle = colors['--text-3'];
    const {width, usesDevices} = this.model;
    const more = stream.priority !== 0 ? `, priority ${stream.priority}` :
      width > 1 && !usesDevices ? `, ${width} wide` : '';
    ctx.fillText(this.fit(`${counted(size, 'instruction')}${more}`, room), x, 32);
  }

  measure(text) {
    return this.texts.measure(text);
  }

  fit(text, width) {
    return this.texts.fit(text, width);
  }
}
