// Where nodes and edges stand. An edge over several layers passes through each of them at a point
// that has a place beside the nodes; so edges do not run through boxes. Edges over more layers than
// a limit are far edges: they get no points, and are drawn for a chosen op only. So all is linear in
// nodes and edges, but for sorting within layers.
const NODE_HEIGHT = 40;
const LAYER_HEIGHT = 76;
const NODE_GAP = 22;
const POINT_GAP = 10;
const MAX_SPAN = 12;
const LARGE_GRAPH = 20000;  // from so many nodes on edges pass through fewer layers
const MAX_SPAN_OF_LARGE = 3;

// What a node says below its type: of an op the first output that is computed anew.
function nameOf({op, v}) {
  if (op === null) return v.name;
  const writes = op.writes();
  return (writes.find((written) => !written.persistable) ?? writes[0])?.name ?? '';
}

class Placing {
  constructor(graph) {
    this.graph = graph;
    this.layers = new Layers(graph);
    this.maxSpan = graph.nodes.length > LARGE_GRAPH ? MAX_SPAN_OF_LARGE : MAX_SPAN;
    this.rows = Array.from({length: this.layers.count}, () => []);  // items from left to right
    this.items = graph.nodes.map((node) => this.addItem(node, this.layers.layerOf[node.index]));
    this.farCount = 0;
    for (const edge of graph.edges) this.addEdge(edge);
    this.arrange();
    this.measure();
  }

  addItem(node, layer) {
    const item = {node, layer, x: 0, width: node ? this.widthOf(node) : 0, up: [], down: []};
    this.rows[layer].push(item);
    return item;
  }

  // From the length of its texts: measuring 100,000 of them would take seconds.
  widthOf(node) {
    const type = (node.op?.type.length ?? 0) * 7.6 + (node.op?.inner.length > 0 ? 56 : 32);
    return Math.min(Math.max(type, nameOf(node).length * 6.6 + 30, 96), 210);
  }

  addEdge(edge) {
    const [from, to] = [this.items[edge.from.index], this.items[edge.to.index]];
    edge.far = to.layer - from.layer > this.maxSpan;
    edge.chain = [from];
    if (edge.far) {
      ++this.farCount;
      edge.chain.push(to);
      return;
    }
    for (let layer = from.layer + 1; layer < to.layer; ++layer) edge.chain.push(this.addItem(null, layer));
    edge.chain.push(to);
    for (let i = 1; i < edge.chain.length; ++i) {
      const segment = {edge, from: edge.chain[i - 1], to: edge.chain[i]};
      segment.from.down.push(segment);
      segment.to.up.push(segment);
    }
  }

  // Sweeps down and up: items move to where their neighbours are, first in any order, then in the
  // order found.
  arrange() {
    for (const row of this.rows) this.put(row, row.map(() => 0));
    for (const [direction, sorts] of [['up', true], ['down', true], ['up', true], ['down', true], ['up', false],
      ['down', false], ['both', false]]) {
      const rows = direction === 'down' ? [...this.rows].reverse() : this.rows;
      for (const row of rows) this.moveRow(row, direction, sorts);
    }
  }

  moveRow(row, direction, sorts) {
    for (const item of row) item.wanted = this.wantedOf(item, direction);
    if (sorts) row.sort((a, b) => a.wanted - b.wanted);
    this.put(row, row.map((item) => item.wanted));
  }

  // The middle of the neighbours.
  wantedOf(item, direction) {
    const xs = [];
    if (direction !== 'down') for (const {from} of item.up) xs.push(from.x);
    if (direction !== 'up') for (const {to} of item.down) xs.push(to.x);
    if (xs.length === 0) return item.x;
    xs.sort((a, b) => a - b);
    return (xs[(xs.length - 1) >> 1] + xs[xs.length >> 1]) / 2;
  }

  gap(left, right) {
    return (left.width + right.width) / 2 + (left.node && right.node ? NODE_GAP : POINT_GAP);
  }

  // The centres nearest to the wanted ones, by least squares, that keep the order and the gaps: runs
  // of items that touch each other move as one.
  put(row, wanted) {
    const runs = [];
    let offset = 0;
    row.forEach((item, index) => {
      if (index > 0) offset += this.gap(row[index - 1], item);
      item.offset = offset;
      const weight = item.node ? 1 : 2;  // long edges are straight
      let run = {first: index, weight, x: wanted[index] - offset};
      while (runs.length > 0 && runs.at(-1).x >= run.x) {
        const before = runs.pop();
        const sum = before.weight + run.weight;
        run = {first: before.first, weight: sum, x: (before.x * before.weight + run.x * run.weight) / sum};
      }
      runs.push(run);
    });
    runs.forEach(({first, x}, index) => {
      const end = runs[index + 1]?.first ?? row.length;
      for (let i = first; i < end; ++i) row[i].x = x + row[i].offset;
    });
  }

  // The whole is moved so that it starts at 0.
  measure() {
    let left = Infinity;
    let right = -Infinity;
    for (const row of this.rows) {
      if (row.length === 0) continue;
      left = Math.min(left, row[0].x - row[0].width / 2);
      right = Math.max(right, row.at(-1).x + row.at(-1).width / 2);
    }
    this.width = Math.max(right - left, 0);
    this.height = Math.max(this.rows.length * LAYER_HEIGHT - (LAYER_HEIGHT - NODE_HEIGHT), 0);
    for (const row of this.rows) {
      for (const item of row) item.x -= left;
    }
  }

  itemOf(op) {
    return this.items[op.id];
  }

  layerAt(y) {
    return Math.floor(y / LAYER_HEIGHT);
  }

  // The node at a point, or null.
  nodeAt(x, y) {
    if (y - this.layerAt(y) * LAYER_HEIGHT > NODE_HEIGHT) return null;
    const row = this.rows[this.layerAt(y)] ?? [];
    return row.find((item) => item.node && Math.abs(item.x - x) <= item.width / 2)?.node ?? null;
  }

  // The edge that passes a point within `reach`, or null.
  edgeAt(x, y, reach) {
    const layer = this.layerAt(y);
    const row = this.rows[layer] ?? [];
    const down = y - layer * LAYER_HEIGHT;
    if (down <= NODE_HEIGHT) {
      return row.find((item) => !item.node && Math.abs(item.x - x) <= reach)?.up[0].edge ?? null;
    }
    const share = (down - NODE_HEIGHT) / (LAYER_HEIGHT - NODE_HEIGHT);
    let nearest = null;
    for (const {down: segments} of row) {
      for (const {edge, from, to} of segments) {
        const away = Math.abs(curveX(from.x, to.x, share) - x);
        if (away <= reach) [nearest, reach] = [edge, away];
      }
    }
    return nearest;
  }
}

// Where a segment is at that share of the way down: it leaves and arrives upright.
function curveX(from, to, share) {
  let [low, high] = [0, 1];
  for (let i = 0; i < 14; ++i) {
    const t = (low + high) / 2;
    const y = 1.5 * t * (1 - t) + t * t * t;
    if (y < share) low = t;
    else high = t;
  }
  return from + (to - from) * (3 - 2 * low) * low * low;
}
