// In which layer each node of a graph stands: below all it reads from, so that edges lead down. A
// layer has room for some nodes only; more go to the next with room. What reads nothing stands just
// above its first reader, what has no edge at all below the rest. Linear, but for the look for room.
const MAX_IN_LAYER = 16;

class Layers {
  constructor(graph) {
    this.counts = new Map();  // nodes by layer
    this.nextFree = new Map();  // by full layer and direction: where to look on
    this.layerOf = new Int32Array(graph.nodes.length);
    this.least = 1;
    this.most = 0;
    const alone = [];
    const first = [];
    for (const node of graph.nodes) {
      if (node.before.length > 0) {
        this.put(node, 1 + this.lowest(node), 1);
      } else {
        (node.after.length > 0 ? first : alone).push(node);
      }
    }
    for (const node of first) this.put(node, this.highest(node) - 1, -1);
    const below = this.most + 1;
    for (const node of alone) this.put(node, below, 1);
    this.count = this.counts.size === 0 ? 0 : this.most - this.least + 1;
    this.layerOf = this.layerOf.map((layer) => layer - this.least);
  }

  // Of what a node reads from. What reads nothing has no place yet and counts as in layer 0.
  lowest(node) {
    return node.before.reduce((layer, {from}) => Math.max(layer, this.layerOf[from.index]), 0);
  }

  highest(node) {
    return node.after.reduce((layer, {to}) => Math.min(layer, this.layerOf[to.index]), Infinity);
  }

  // The nearest layer with room from `layer` on, down (1) or up (-1).
  put(node, layer, direction) {
    const passed = [];
    const key = (at) => 2 * at + (direction > 0 ? 0 : 1);
    while ((this.counts.get(layer) ?? 0) >= MAX_IN_LAYER) {
      passed.push(layer);
      layer = this.nextFree.get(key(layer)) ?? layer + direction;
    }
    for (const at of passed) this.nextFree.set(key(at), layer);
    this.counts.set(layer, (this.counts.get(layer) ?? 0) + 1);
    this.layerOf[node.index] = layer;
    this.least = Math.min(this.least, layer);
    this.most = Math.max(this.most, layer);
  }
}
