// The graph of one block: a node for each op and for each variable that the block uses and nobody
// in it has written, parameters apart; an edge from the latest op that wrote a variable to each op
// that reads it. Edges lead from lower to higher numbers of ops.
class Graph {
  constructor(model) {
    this.model = model;
    this.nodes = model.ops.map((op) => ({index: op.id, op, v: null, before: [], after: []}));
    this.edges = [];
    const latest = new Map();   // by variable
    for (const op of model.ops) {
      this.connect(this.nodes[op.id], op.allReads(), latest);
      for (const v of op.allWrites()) latest.set(v, this.nodes[op.id]);
    }
  }

  connect(node, reads, latest) {
    const edges = new Map();  // by the node they come from
    for (const v of reads) {
      if (!latest.has(v)) {
        if (v.persistable) continue;
        latest.set(v, this.addSource(v));
      }
      const from = latest.get(v);
      if (!edges.has(from)) edges.set(from, this.addEdge(from, node));
      edges.get(from).vars.push(v);
    }
  }

  addSource(v) {
    const source = {index: this.nodes.length, op: null, v, before: [], after: []};
    this.nodes.push(source);
    return source;
  }

  addEdge(from, to) {
    const edge = {from, to, vars: [], chain: null};
    from.after.push(edge);
    to.before.push(edge);
    this.edges.push(edge);
    return edge;
  }
}
