// The plan of one block as the page uses it: the dump's JSON with names resolved and every relation
// to be followed in both directions. What leads to other blocks is added by Blocks.
const EMPTY = '@EMPTY@';

class PlanModel {
  constructor(data) {
    this.block = data.block ?? 0;
    this.captures = data.captures ?? [];
    this.entries = data.entries ?? [];
    this.results = data.results ?? [];
    this.streams = data.streams.length > 0 ? data.streams : [{name: 'host', place: 'cpu', priority: 0}];
    this.usesDevices = this.streams.length > 1;
    this.order = data.order;
    this.width = data.width;
    this.criticalPath = data.critical_path;
    this.fallbacks = data.fallbacks;
    this.fetches = new Set(data.fetches);
    this.vars = new Map(data.vars.map((v) => [v.name,
      {...v, writers: [], readers: [], freedBy: [], sharers: [], capturedBy: []}]));
    this.events = data.events.map((event, id) => ({id, recorder: event.recorder, waiters: []}));
    this.instructions = data.instructions;
    this.order.forEach((id, position) => this.addInstruction(this.instructions[id], position));
    this.edges = data.edges;
    for (const edge of this.edges) {
      this.instructions[edge.to].before.push(edge);
      this.instructions[edge.from].after.push(edge);
      // The event that keeps this order, if there is one of its own.
      edge.event = this.instructions[edge.to].after_events.find((wait) =>
        !wait.previous_run && this.events[wait.event].recorder === edge.from)?.event;
    }
    for (const v of this.vars.values()) {
      if (v.storage !== v.name) this.vars.get(v.storage)?.sharers.push(v);
    }
    // Of a training program: how many instructions each part of a step has.
    this.parts = new Map();
    for (const {part} of this.instructions) this.parts.set(part, (this.parts.get(part) ?? 0) + 1);
    this.trains = this.parts.size > 1;
    this.shrunkCount = this.edges.reduce((count, edge) => count + (edge.shrunk ? 1 : 0), 0);
  }

  // In trace order, so that the lists of a variable are in that order, too.
  addInstruction(instruction, position) {
    instruction.position = position;
    instruction.family = familyOf(instruction.type);
    instruction.part ??= 'forward';
    instruction.before = [];
    instruction.after = [];
    instruction.reads = this.present(instruction.inputs);
    instruction.writes = this.present(instruction.outputs);
    for (const name of new Set(instruction.reads)) this.vars.get(name)?.readers.push(instruction);
    for (const name of new Set(instruction.writes)) this.vars.get(name)?.writers.push(instruction);
    for (const name of instruction.frees) this.vars.get(name)?.freedBy.push(instruction);
    for (const wait of instruction.after_events) {
      this.events[wait.event].waiters.push({instruction, previousRun: wait.previous_run});
    }
  }

  positionOf(id) {
    return this.instructions[id].position;
  }

  present(slots) {
    return Object.values(slots).flat().filter((name) => name !== EMPTY);
  }

  // Instructions from edge.from to edge.to over kept edges, or null: what makes a shrunk edge
  // superfluous. Edges lead forward in program order, so the search never leaves that range.
  pathAround(edge) {
    const cameFrom = new Map([[edge.from, -1]]);
    const queue = [edge.from];
    for (let i = 0; i < queue.length && !cameFrom.has(edge.to); ++i) {
      for (const next of this.instructions[queue[i]].after) {
        if (next.shrunk || next.to > edge.to || cameFrom.has(next.to)) continue;
        cameFrom.set(next.to, queue[i]);
        queue.push(next.to);
      }
    }
    if (!cameFrom.has(edge.to)) return null;
    const path = [];
    for (let id = edge.to; id !== -1; id = cameFrom.get(id)) path.push(this.instructions[id]);
    return path.reverse();
  }

  // "float32[-1,3,224,224]", as far as it is known before a run.
  typeOf(v) {
    if (v.kind !== 'lod_tensor') return v.kind || 'unknown kind';
    const shape = v.dims ? `[${v.dims.join(',')}]` : v.rank >= 0 ? `, rank ${v.rank}` : '';
    return v.dtype + shape;
  }

  // Memory that `v` may share, `v` itself not among it.
  storageMates(v) {
    const owner = this.vars.get(v.storage) ?? v;
    return [owner, ...owner.sharers].filter((other) => other !== v);
  }

  streamOf(instruction) {
    return this.streams[instruction.stream];
  }
}
