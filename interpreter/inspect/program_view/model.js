// The program as the page uses it: names resolved to variables, blocks as a tree, and every relation
// to be followed in both directions. A damaged program has one, too: what a name or a block number
// does not lead to is left out.
const EMPTY = '@EMPTY@';
const FLAGS = [[1, 'persistable'], [2, 'parameter'], [4, 'check_feed'], [8, 'stop_gradient']];

class ProgramModel {
  constructor(data) {
    this.title = data.title;
    this.facts = data.facts;
    this.strings = data.strings;
    this.attrs = data.attrs.map((list) => list.map(([name, text]) => [data.strings[name], text]));
    this.blocks = data.blocks.map((block, index) => new BlockModel(block, index, this.strings));
    this.statistics = new Map(Object.entries(data.statistics));
    this.blocks.forEach((block, index) => this.addOps(block, data.blocks[index].ops));
    this.list = [];  // each below the one that runs it
    for (const block of this.blocks) {
      if (block.rank === undefined && !this.isRun(block)) this.addToList(block, 0);
    }
    for (const block of this.blocks) {
      if (block.rank === undefined) this.addToList(block, 0);
    }
    this.main = this.blocks[0];
    this.inputs = data.inputs.map((name) => this.resolve(this.main, this.strings[name]));
    this.outputs = data.outputs.map((name) => this.resolve(this.main, this.strings[name]));
  }

  addOps(block, rows) {
    block.ops = rows.map((row, id) => new OpModel(row, id, block, this));
    for (const op of block.ops) {
      for (const v of new Set(op.reads())) v.readers.push(op);
      for (const v of new Set(op.writes())) v.writers.push(op);
      op.inner = op.blocks.map((index) => this.blocks[index]).filter((inner) => inner !== undefined);
      for (const inner of op.inner) inner.runner ??= op;
    }
  }

  isRun(block) {
    return block.runner !== undefined && block.runner.model !== block && block.index !== 0;
  }

  addToList(block, depth) {
    block.rank = this.list.length;
    block.depth = depth;
    this.list.push(block);
    for (const op of block.ops) {
      for (const inner of op.inner) {
        if (inner.runner !== op || inner.rank !== undefined) continue;
        inner.parent = block;
        this.addToList(inner, depth + 1);
      }
    }
  }

  // From the main block to `block`, both included.
  wayTo(block) {
    const way = [];
    for (let at = block; at !== undefined; at = at.parent) way.unshift(at);
    return way;
  }

  // The variable that a name means in a block: that of the block, of the block whose gradient it
  // is, or of a block around it. A name that nobody declares is the block's own.
  resolve(block, name) {
    if (name === EMPTY) return null;
    let found = block.resolved.get(name);
    if (found !== undefined) return found;
    let at = block;
    for (let steps = 0; at !== undefined && steps <= this.blocks.length; ++steps) {
      found = at.vars.get(name) ?? this.blocks[at.forward]?.vars.get(name);
      if (found !== undefined) break;
      at = this.blocks[at.around];
    }
    if (found === undefined) {
      found = new VarModel(block, name, '', 0, 0, false);
      block.vars.set(name, found);
    }
    block.resolved.set(name, found);
    return found;
  }
}

class BlockModel {
  constructor(data, index, strings) {
    this.index = index;
    this.block = index;
    this.around = data.parent;
    this.forward = data.forward;
    this.resolved = new Map();
    this.vars = new Map(data.vars.map(([name, type, flags, lod]) =>
      [strings[name], new VarModel(this, strings[name], strings[type], flags, lod, true)]));
    this.ops = [];
  }

  get order() {
    return this.ops;
  }

  positionOf(id) {
    return id;
  }

  // Variables of blocks around that the ops here, or in the blocks they run, read and write.
  captures() {
    if (this.captured !== undefined) return this.captured;
    this.captured = {reads: new Set(), writes: new Set()};  // seen empty by a block that runs itself
    for (const op of this.ops) {
      for (const v of op.allReads()) if (v.model !== this) this.captured.reads.add(v);
      for (const v of op.allWrites()) if (v.model !== this) this.captured.writes.add(v);
    }
    return this.captured;
  }
}

class VarModel {
  constructor(model, name, type, flags, lod, declared) {
    Object.assign(this, {model, name, flags, lod, declared, type: type || 'not declared'});
    this.writers = [];
    this.readers = [];
  }

  get persistable() {
    return (this.flags & 1) !== 0;
  }

  flagNames() {
    return FLAGS.filter(([bit]) => (this.flags & bit) !== 0).map(([, name]) => name);
  }
}

class OpModel {
  constructor(row, id, model, program) {
    const slots = (rows = []) => rows.map(([slot, ...args]) => ({
      slot: program.strings[slot],
      args: args.map((arg) => program.resolve(model, program.strings[arg])),
    }));
    this.id = id;
    this.model = model;
    this.type = program.strings[row.type];
    this.part = row.part ?? 'forward';
    this.attrs = row.attrs;  // index of the list
    this.ins = slots(row.in);
    this.outs = slots(row.out);
    this.blocks = row.blocks ?? [];
    this.inplace = (row.inplace ?? []).map((pair) => pair.map((name) => program.strings[name]));
    this.names = [row.in ?? [], row.out ?? []].flat().flatMap(([, ...args]) => args);
    this.family = familyOf(this.type);
  }

  reads() {
    return this.ins.flatMap(({args}) => args).filter((v) => v !== null);
  }

  writes() {
    return this.outs.flatMap(({args}) => args).filter((v) => v !== null);
  }

  // With what the blocks it runs use of this block and those around it.
  allReads() {
    return this.withCaptures(this.reads(), 'reads');
  }

  allWrites() {
    return this.withCaptures(this.writes(), 'writes');
  }

  withCaptures(own, what) {
    const all = new Set(own);
    for (const inner of this.inner) {
      for (const v of inner.captures()[what]) all.add(v);
    }
    return all;
  }
}
