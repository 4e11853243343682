// Where things stand: one row per instruction in trace order, one lane per stream. The host's lane
// has a track for each chain of instructions that could run beside the others; which thread takes
// which is decided in the run, so tracks are no threads.
const ROW_HEIGHT = 28;   // at 100 %
const MIN_ROW_HEIGHT = 0.002;
const MAX_ROW_HEIGHT = 48;
const TEXT_ROW_HEIGHT = 15;  // below it rows are bars without text
const HEAD_HEIGHT = 40;
const GUTTER_WIDTH = 62;
const MINIMAP_WIDTH = 62;
const LIST_WIDTH = 300;  // at least, of the columns beside the lanes
const MAX_TRACKS = 4;
const MAX_BOX_WIDTH = 150;  // and the mark of a block
const FIRST_ARC = 44;  // room for edges left of a lane's boxes
const OTHER_ARC = 26;

class Layout {
  // `widthOf(type, small)`: of an op type's name in a box.
  constructor(model, branches, widthOf) {
    this.laneOf = new Int16Array(model.instructions.length);
    const tracks = branches ? this.assignTracks(model) : 1;
    this.groups = [];  // one per stream: title and the lanes below it
    this.lanes = [];
    const count = tracks + model.streams.length - 1;
    this.smallBoxes = count > 3;
    const boxWidths = this.boxWidths(model, (type) => widthOf(type, this.smallBoxes));
    let x = GUTTER_WIDTH;
    model.streams.forEach((stream, index) => {
      const group = {stream, index, x, width: 0, size: 0, first: this.lanes.length};
      for (let track = 0; track < (index === 0 ? tracks : 1); ++track) {
        const arc = this.lanes.length === 0 ? FIRST_ARC : OTHER_ARC;
        const boxWidth = boxWidths[index];
        this.lanes.push({index: this.lanes.length, boxX: x + arc, boxWidth, group});
        x += arc + boxWidth + 12;
      }
      group.width = x - group.x;
      this.groups.push(group);
    });
    for (const instruction of model.instructions) {
      const {stream} = instruction;
      ++this.groups[stream].size;
      if (stream > 0) this.laneOf[instruction.id] = this.groups[stream].first;
    }
    this.listX = x + 14;
  }

  // By stream: as wide as its names need, within limits.
  boxWidths(model, widthOf) {
    const needed = model.streams.map(() => 0);
    for (const {stream, type, record, inner} of model.instructions) {
      const width = Math.min(widthOf(type) + (record < 0 ? 24 : 52), MAX_BOX_WIDTH) + (inner ? 30 : 0);
      needed[stream] = Math.max(needed[stream], width);
    }
    return needed.map((width) => Math.max(Math.ceil(width), 84));
  }

  // An instruction follows a predecessor that ends a track; otherwise it takes a track that nobody
  // needs any more, or a new one. Returns how many there are.
  assignTracks(model) {
    const ends = [];      // by track: the latest instruction
    const unplaced = new Map(model.instructions.map((i) => [i.id, i.after.filter((e) => !e.shrunk).length]));
    for (const id of model.order) {
      const instruction = model.instructions[id];
      const kept = instruction.before.filter((edge) => !edge.shrunk);
      for (const edge of kept) unplaced.set(edge.from, unplaced.get(edge.from) - 1);
      if (instruction.stream !== 0) continue;
      const before = new Set(kept.map((edge) => edge.from));
      let track = ends.findIndex((end) => before.has(end));
      if (track < 0) track = ends.findIndex((end) => unplaced.get(end) === 0);
      if (track < 0) track = ends.length < MAX_TRACKS ? ends.length : this.oldest(model, ends);
      ends[track] = id;
      this.laneOf[id] = track;
    }
    return Math.max(ends.length, 1);
  }

  oldest(model, ends) {
    const positions = ends.map((id) => model.instructions[id].position);
    return positions.indexOf(Math.min(...positions));
  }

  lane(id) {
    return this.lanes[this.laneOf[id]];
  }
}

// What part of the layout is on screen. Rows are zoomed, lanes keep their width: so text stays
// readable, and 2,000 rows fit on a screen as bars.
class Camera {
  constructor(rows) {
    this.rows = rows;
    this.rowHeight = ROW_HEIGHT;
    this.x = 0;
    this.y = 0;
    this.width = 0;
    this.height = 0;
    this.contentWidth = 0;
  }

  rowY(position) {
    return HEAD_HEIGHT + 6 + position * this.rowHeight - this.y;
  }

  rowAt(y) {
    return Math.floor((y - HEAD_HEIGHT - 6 + this.y) / this.rowHeight);
  }

  get firstRow() {
    return Math.max(0, this.rowAt(HEAD_HEIGHT));
  }

  get lastRow() {
    return Math.min(this.rows - 1, this.rowAt(this.height));
  }

  get showsText() {
    return this.rowHeight >= TEXT_ROW_HEIGHT;
  }

  get bodyHeight() {
    return this.height - HEAD_HEIGHT;
  }

  clamp() {
    const extra = this.rows * this.rowHeight + 24 - this.bodyHeight;
    this.y = Math.min(Math.max(this.y, 0), Math.max(extra, 0));
    this.x = Math.min(Math.max(this.x, 0), Math.max(this.contentWidth - this.width, 0));
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.clamp();
  }

  // Keeps the row at `y` where it is.
  zoom(factor, x, y = HEAD_HEIGHT + this.bodyHeight / 2) {
    const row = (y - HEAD_HEIGHT - 6 + this.y) / this.rowHeight;
    const whole = Math.max((this.bodyHeight - 24) / this.rows, MIN_ROW_HEIGHT);
    const least = Math.min(whole, ROW_HEIGHT);
    this.rowHeight = Math.min(Math.max(this.rowHeight * factor, least), MAX_ROW_HEIGHT);
    this.y = row * this.rowHeight - (y - HEAD_HEIGHT - 6);
    this.clamp();
  }

  // Scrolls only as far as needed, with some rows around.
  reveal(position) {
    const margin = Math.min(3 * this.rowHeight, this.bodyHeight / 4);
    const top = this.rowY(position) - HEAD_HEIGHT - margin;
    const bottom = this.rowY(position + 1) + margin - this.height;
    if (top < 0) this.y += top;
    if (bottom > 0) this.y += bottom;
    this.clamp();
  }

  // The same sideways, for what is drawn from `left` to `right`.
  revealAcross(left, right) {
    const end = this.x + this.width - MINIMAP_WIDTH;
    if (right > end) this.x += right - end;
    if (left < this.x) this.x = left;
    this.clamp();
  }

  center(position) {
    this.y = (position + 0.5) * this.rowHeight - this.bodyHeight / 2;
    this.clamp();
  }
}
