// Edges and events as curves between boxes.
const MAX_EDGES = 20000;  // more in one picture say nothing and take too long

// The custom property with the colour of a kind of edge.
const EDGE_COLORS = {raw: '--raw', war: '--war', waw: '--waw'};
function edgeColorName(kind) {
  return EDGE_COLORS[kind] ?? '--implicit';
}

class EdgePainter {
  constructor(model, layout, camera) {
    this.model = model;
    this.layout = layout;
    this.camera = camera;
    this.groups = new Map();  // by colour and dash: edges drawn with one stroke
    for (const edge of model.edges) {
      const key = edgeColorName(edge.kind) + (edge.shrunk ? ' shrunk' : '');
      if (!this.groups.has(key)) {
        this.groups.set(key, {color: edgeColorName(edge.kind), shrunk: edge.shrunk, edges: []});
      }
      this.groups.get(key).edges.push(edge);
    }
    this.drawn = {kept: 0, shrunk: 0, events: 0, hidden: 0};
  }

  // Whether any part of the way between two instructions is on screen.
  inView(from, to) {
    const a = this.model.instructions[from].position;
    const b = this.model.instructions[to].position;
    return Math.max(a, b) >= this.first && Math.min(a, b) <= this.last;
  }

  // An order that an event keeps is drawn as the event.
  isShown(edge, show) {
    return (edge.shrunk ? show.shrunk : show.kept) && !(show.events && edge.event !== undefined);
  }

  drawAll(ctx, colors, show, faint) {
    this.first = this.camera.firstRow;
    this.last = this.camera.lastRow;
    this.drawn = {kept: 0, shrunk: 0, events: 0, hidden: 0};
    const groups = [...this.groups.values()].map((group) => (
      {...group, edges: group.edges.filter((e) => this.isShown(e, show) && this.inView(e.from, e.to))}));
    const total = groups.reduce((sum, group) => sum + group.edges.length, 0);
    if (total > MAX_EDGES) {
      this.drawn.hidden = total;
      return;
    }
    const small = this.camera.rowHeight < 6;
    const crowd = small ? Math.min(1, Math.sqrt(400 / total)) : 1;
    for (const {color, shrunk, edges} of groups) {
      ctx.strokeStyle = colors[color];
      ctx.globalAlpha = (shrunk ? 0.6 : 0.85) * (faint ? 0.5 : 1) * crowd;
      ctx.lineWidth = small ? 0.75 : shrunk ? 1.1 : 1.5;
      ctx.setLineDash(shrunk && !small ? [4, 3] : []);
      this.drawn[shrunk ? 'shrunk' : 'kept'] += edges.length;
      const [near, passing] = this.splitPassing(edges);
      this.stroke(ctx, near);
      ctx.globalAlpha *= 0.2;
      this.stroke(ctx, passing);
    }
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
  }

  // Edges with an end on screen, and those that only pass by: of the latter a plan has very many.
  splitPassing(edges) {
    const ends = (id) => {
      const {position} = this.model.instructions[id];
      return position >= this.first && position <= this.last;
    };
    const near = [];
    const passing = [];
    for (const edge of edges) (ends(edge.from) || ends(edge.to) ? near : passing).push(edge);
    return [near, passing];
  }

  stroke(ctx, edges) {
    ctx.beginPath();
    for (const edge of edges) this.trace(ctx, edge.from, edge.to);
    ctx.stroke();
  }

  // Those of one instruction, above the others and with heads.
  drawOf(ctx, colors, show, instruction) {
    for (const edge of [...instruction.before, ...instruction.after]) {
      if (!this.isShown(edge, show)) continue;
      ctx.strokeStyle = ctx.fillStyle = colors[edgeColorName(edge.kind)];
      ctx.lineWidth = edge.shrunk ? 1.4 : 2;
      ctx.setLineDash(edge.shrunk ? [5, 4] : []);
      ctx.beginPath();
      const end = this.trace(ctx, edge.from, edge.to);
      ctx.stroke();
      ctx.setLineDash([]);
      this.drawHead(ctx, end, 5);
    }
  }

  drawEvents(ctx, colors, selected) {
    ctx.strokeStyle = ctx.fillStyle = colors['--event'];
    for (const event of this.model.events) {
      for (const {instruction, previousRun} of event.waiters) {
        const chosen = selected !== null && (selected === event.recorder || selected === instruction.id);
        if (event.recorder < 0 || !this.inView(event.recorder, instruction.id)) continue;
        // The record of the run before lies below: its way up is drawn only when asked for.
        if (previousRun && !chosen) {
          this.drawStub(ctx, instruction.id, event.id);
        } else {
          this.drawEvent(ctx, event, instruction.id, previousRun, chosen || selected === null);
        }
        ++this.drawn.events;
      }
    }
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
  }

  drawEvent(ctx, event, waiter, previousRun, strong) {
    ctx.globalAlpha = strong ? 1 : 0.35;
    ctx.lineWidth = strong ? 2 : 1.5;
    ctx.setLineDash(previousRun ? [6, 4] : []);
    ctx.beginPath();
    const end = this.trace(ctx, event.recorder, waiter);
    ctx.stroke();
    ctx.setLineDash([]);
    this.drawHead(ctx, end, 6);
    if (!this.camera.showsText) return;
    const index = this.model.instructions[waiter].after_events.findIndex((wait) => wait.event === event.id);
    this.drawEventLabel(ctx, {...end, x: end.x - end.dx * 20 * index}, `e${event.id}`);
  }

  // The end of an arrow from above, for what the run before recorded.
  drawStub(ctx, waiter, event) {
    if (!this.camera.showsText) return;
    const lane = this.layout.lane(waiter);
    const y = this.rowCenter(waiter);
    const x = lane.boxX - 22;
    ctx.globalAlpha = 0.8;
    ctx.lineWidth = 1.5;
    ctx.setLineDash([4, 3]);
    ctx.beginPath();
    ctx.moveTo(x, y - this.camera.rowHeight * 0.45);
    ctx.quadraticCurveTo(x, y, lane.boxX - 3, y);
    ctx.stroke();
    ctx.setLineDash([]);
    const end = {x: lane.boxX - 2, y, dx: 1, dy: 0};
    this.drawHead(ctx, end, 5);
    this.drawEventLabel(ctx, {...end, x: end.x - 8}, `e${event} \u21bb`);
  }

  drawEventLabel(ctx, {x, y, dx}, text) {
    ctx.font = FONTS.small;
    ctx.textAlign = dx > 0 ? 'right' : 'left';
    ctx.fillText(text, x - dx * 8, y + 13);
    ctx.textAlign = 'left';
  }

  drawHead(ctx, {x, y, dx, dy}, size) {
    if (this.camera.rowHeight < 6) return;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x - dx * size * 1.5 - dy * size * 0.7, y - dy * size * 1.5 - dx * size * 0.7);
    ctx.lineTo(x - dx * size * 1.5 + dy * size * 0.7, y - dy * size * 1.5 + dx * size * 0.7);
    ctx.fill();
  }

  rowCenter(id) {
    const {position} = this.model.instructions[id];
    return this.camera.rowY(position) + this.camera.rowHeight / 2;
  }

  // Adds the curve to the path and returns its end with the direction it arrives in. Down within a
  // lane edges keep to the left of its boxes, the farther the longer they are; neighbours are
  // joined below one another.
  trace(ctx, from, to) {
    const a = this.layout.lane(from);
    const b = this.layout.lane(to);
    const ya = this.rowCenter(from);
    const yb = this.rowCenter(to);
    if (a === b) return this.traceInLane(ctx, a, from, to, ya, yb);
    const right = b.boxX > a.boxX;
    const xa = right ? a.boxX + a.boxWidth : a.boxX;
    const xb = right ? b.boxX - 2 : b.boxX + b.boxWidth + 2;
    const bend = Math.max(18, Math.abs(xb - xa) * 0.5) * (right ? 1 : -1);
    ctx.moveTo(xa, ya);
    ctx.bezierCurveTo(xa + bend, ya, xb - bend, yb, xb, yb);
    return {x: xb, y: yb, dx: right ? 1 : -1, dy: 0};
  }

  traceInLane(ctx, lane, from, to, ya, yb) {
    const {instructions} = this.model;
    const rows = Math.abs(instructions[to].position - instructions[from].position);
    const {rowHeight} = this.camera;
    if (rows === 1 && rowHeight > 6 && yb > ya) {
      const half = boxHeight(rowHeight) / 2;
      const x = lane.boxX + 14;
      ctx.moveTo(x, ya + half);
      ctx.lineTo(x, yb - half);
      return {x, y: yb - half, dx: 0, dy: 1};
    }
    const room = lane.index === 0 ? FIRST_ARC : OTHER_ARC;
    const bulge = Math.min(room - 6, 7 + 5 * Math.log2(rows + 1));
    const x = lane.boxX - 1;
    ctx.moveTo(x, ya);
    ctx.bezierCurveTo(x - bulge * 1.33, ya, x - bulge * 1.33, yb, x, yb);
    return {x, y: yb, dx: 1, dy: 0};
  }
}
