// The blocks of a plan as a tree: which instruction runs which block, and what a block uses of the
// blocks around it.
const HIDDEN_SLOT = 'sub_block';  // of arguments that stand for what the instruction's block captures

class Blocks {
  constructor(data) {
    this.title = data.title;
    this.main = new PlanModel(data);
    this.byNumber = new Map([[0, this.main]]);
    for (const block of data.blocks ?? []) this.byNumber.set(block.block, new PlanModel(block));
    this.list = [];  // each below the one that runs it
    this.add(this.main, 0);
  }

  add(model, depth) {
    model.rank = this.list.length;
    model.depth = depth;
    model.children = [];
    this.list.push(model);
    for (const id of model.order) {
      const instruction = model.instructions[id];
      const inner = this.byNumber.get(instruction.runs);
      if (inner === undefined) continue;
      instruction.inner = inner;
      inner.runner = instruction;
      inner.parent = model;
      model.children.push(inner);
      this.connectCaptures(inner);
      this.add(inner, depth + 1);
    }
  }

  // The hidden arguments are in the order of the captures. Of a capture that is read and written the
  // two arguments are mostly one variable.
  connectCaptures(inner) {
    const reads = (inner.runner.inputs[HIDDEN_SLOT] ?? []).values();
    const writes = (inner.runner.outputs[HIDDEN_SLOT] ?? []).values();
    for (const capture of inner.captures) {
      const read = capture.read ? reads.next().value : undefined;
      const written = capture.written ? writes.next().value : undefined;
      capture.outer = read === written ? [{name: read, access: 'reads, writes'}] :
        [{name: read, access: 'reads'}, {name: written, access: 'writes'}].filter(({name}) => name !== undefined);
      inner.vars.get(capture.name).capture = capture;
      for (const {name} of capture.outer) {
        inner.parent.vars.get(name).capturedBy.push({model: inner, name: capture.name});
      }
    }
  }

  // From the main block to `model`, both included.
  wayTo(model) {
    const way = [];
    for (let at = model; at !== undefined; at = at.parent) way.unshift(at);
    return way;
  }
}

// What the variable of that name is in the blocks around, the nearest first.
function originsOf(name, model) {
  const origins = [];
  let v = model.vars.get(name);
  while (v?.capture !== undefined) {
    model = model.parent;
    v = model.vars.get(v.capture.outer.at(-1).name);
    if (v !== undefined) origins.push({name: v.name, model});
  }
  return origins;
}
