#include "interpreter/analysis/dependencies.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"

namespace interp {
namespace {

constexpr InstrId kNone = -1;

struct Reader {
  InstrId id = kNone;
  bool memory = true;  // a later writer must wait until it is complete
};

// Last writer and the readers since then, of one variable or storage.
struct Accesses {
  InstrId writer = kNone;
  std::vector<Reader> readers;
};

class HazardBuilder {
 public:
  HazardBuilder(const std::vector<Instruction>& instructions, const std::vector<PlanVar>& vars)
      : instructions_(instructions),
        vars_(vars),
        by_var_(vars.size()),
        by_storage_(vars.size()),
        shared_(SharedStorages(vars)) {}

  // Adds the accesses of all instructions, numbered from `first`, to storages that `wanted` has.
  template <typename Wanted>
  void AddAll(InstrId first, const Wanted& wanted) {
    for (size_t i = 0; i < instructions_.size(); ++i) {
      Add(first + static_cast<InstrId>(i), instructions_[i], wanted);
    }
  }

  std::vector<Edge> Take() { return std::move(edges_); }

 private:
  // By storage id: whether more than one variable has it.
  static std::vector<bool> SharedStorages(const std::vector<PlanVar>& vars) {
    std::vector<bool> shared(vars.size(), false);
    for (size_t id = 0; id < vars.size(); ++id) {
      if (vars[id].storage != static_cast<int32_t>(id)) shared[vars[id].storage] = true;
    }
    return shared;
  }

  template <typename Wanted>
  void Add(InstrId i, const Instruction& instruction, const Wanted& wanted) {
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0 || !wanted(vars_[id].storage)) continue;
      const bool needs_buffer =
          (InputFlags(instruction, static_cast<int>(arg)) & kNoNeedBuffer) == 0;
      const bool at_issue = needs_buffer && IsHostInput(instruction, static_cast<int>(arg));
      Read(i, id, needs_buffer, at_issue, by_var_[id]);
      if (shared_[vars_[id].storage] && needs_buffer) {
        Read(i, id, needs_buffer, at_issue, by_storage_[vars_[id].storage]);
      }
    }
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0 || !wanted(vars_[id].storage)) continue;
      if (shared_[vars_[id].storage] && !IsViewOutput(instruction, arg)) {
        Write(i, instruction, id, by_storage_[vars_[id].storage]);
      }
      Write(i, instruction, id, by_var_[id]);
    }
  }

  static bool IsViewOutput(const Instruction& instruction, size_t arg) {
    return std::any_of(
        instruction.share.begin(), instruction.share.end(), [&](const InplacePair& pair) {
          return pair.output == static_cast<int32_t>(arg) && IsView(instruction, pair);
        });
  }

  void Read(InstrId i, VarId var, bool needs_buffer, bool at_issue, Accesses& accesses) {
    if (accesses.writer != kNone) {
      AddEdge({.from = accesses.writer,
               .to = i,
               .kind = EdgeKind::kReadAfterWrite,
               .var = var,
               .memory = needs_buffer,
               .host_reads = at_issue});
    }
    const bool memory = needs_buffer && !at_issue;
    if (accesses.readers.empty() || accesses.readers.back().id != i) {
      accesses.readers.push_back({i, memory});
    } else if (memory) {
      accesses.readers.back().memory = true;
    }
  }

  void Write(InstrId i, const Instruction& instruction, VarId var, Accesses& accesses) {
    bool read_by_others = false;
    bool memory_read = false;
    for (const Reader& reader : accesses.readers) {
      if (reader.id == i) continue;
      AddEdge({.from = reader.id,
               .to = i,
               .kind = EdgeKind::kWriteAfterRead,
               .var = var,
               .memory = reader.memory});
      read_by_others = true;
      memory_read = memory_read || reader.memory;
    }
    // On the host a reader of metadata stands between the writers, too: it has completed.
    const bool hidden =
        instruction.place.on_host() && OnHost(accesses.writer) ? read_by_others : memory_read;
    if (!hidden && accesses.writer != kNone) {
      AddEdge({.from = accesses.writer, .to = i, .kind = EdgeKind::kWriteAfterWrite, .var = var});
    }
    accesses.readers.clear();
    accesses.writer = i;
  }

  bool OnHost(InstrId i) const {
    return i == kNone ||
           instructions_[i % static_cast<InstrId>(instructions_.size())].place.on_host();
  }

  void AddEdge(const Edge& edge) {
    if (edge.from != edge.to) edges_.push_back(edge);
  }

  const std::vector<Instruction>& instructions_;
  const std::vector<PlanVar>& vars_;
  std::vector<Accesses> by_var_;
  std::vector<Accesses> by_storage_;
  const std::vector<bool> shared_;
  std::vector<Edge> edges_;
};

Edge ImplicitEdge(InstrId from, InstrId to, EdgeKind kind) {
  return {.from = from, .to = to, .kind = kind, .memory = false};
}

template <typename Predicate>
void ChainInOrder(const std::vector<Instruction>& instructions, EdgeKind kind, Predicate is_member,
                  std::vector<Edge>& edges) {
  InstrId previous = kNone;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (!is_member(instructions[i])) continue;
    if (previous != kNone) edges.push_back(ImplicitEdge(previous, static_cast<InstrId>(i), kind));
    previous = static_cast<InstrId>(i);
  }
}

// After a `c_sync_comm_stream`, everything waits for the latest one.
void OrderAfterSync(const std::vector<Instruction>& instructions, std::vector<Edge>& edges) {
  InstrId sync = kNone;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (sync != kNone) edges.push_back(ImplicitEdge(sync, id, EdgeKind::kCommunication));
    if (instructions[i].op_type == "c_sync_comm_stream") sync = id;
  }
}

// A `read` op fills the program's inputs: what waits for nothing else waits for the latest one.
void OrderAfterRead(const std::vector<Instruction>& instructions, std::vector<Edge>& edges) {
  std::vector<bool> waits(instructions.size(), false);
  for (const Edge& edge : edges) waits[edge.to] = true;
  InstrId read = kNone;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (read != kNone && !waits[i]) edges.push_back(ImplicitEdge(read, id, EdgeKind::kRead));
    if (instructions[i].op_type == "read") read = id;
  }
}

// coalesce_tensor lays its Outputs side by side inside FusedOutput: whoever reads FusedOutput reads
// what later ops wrote to the parts, and readers of the parts afterwards see its result.
class CoalescedOrder {
 public:
  explicit CoalescedOrder(std::vector<Edge>& edges) : edges_(edges) {}

  void Visit(InstrId id, const Instruction& instruction) {
    if (!groups_.empty()) {
      for (const VarId var : instruction.inputs) Read(id, var);
      for (const VarId var : instruction.outputs) Write(id, var);
    }
    if (instruction.op_type == "coalesce_tensor") Open(instruction);
  }

 private:
  // Of one coalesce_tensor: who wrote parts of it, until its fused output is read.
  struct Group {
    VarId fused = -1;
    InstrId reader = kNone;
    std::vector<InstrId> writers;
  };

  void Open(const Instruction& instruction) {
    const int fused_slot = instruction.def->OutputIndex("FusedOutput");
    for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
      const VarId var = instruction.outputs[arg];
      if (var < 0) continue;
      if (OutputSlotOf(instruction, arg) == fused_slot) {
        of_fused_[var] = groups_.size();
        part_of_.erase(var);
      } else {
        part_of_[var] = groups_.size();
      }
    }
    groups_.emplace_back().fused = FusedOf(instruction, fused_slot);
  }

  static VarId FusedOf(const Instruction& instruction, int fused_slot) {
    for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
      if (OutputSlotOf(instruction, arg) == fused_slot) return instruction.outputs[arg];
    }
    return -1;
  }

  void Read(InstrId id, VarId var) {
    if (const auto it = of_fused_.find(var); it != of_fused_.end()) {
      Group& group = groups_[it->second];
      if (group.reader == kNone) group.reader = id;
      for (const InstrId writer : group.writers) AddEdge(writer, id, group.fused);
      group.writers.clear();
    }
    if (const auto it = part_of_.find(var); it != part_of_.end()) {
      const Group& group = groups_[it->second];
      if (group.reader != kNone && group.reader != id) AddEdge(group.reader, id, group.fused);
    }
  }

  void Write(InstrId id, VarId var) {
    const auto it = part_of_.find(var);
    if (it == part_of_.end()) return;
    Group& group = groups_[it->second];
    if (group.reader == kNone) group.writers.push_back(id);
  }

  void AddEdge(InstrId from, InstrId to, VarId var) {
    edges_.push_back({.from = from, .to = to, .kind = EdgeKind::kCoalesce, .var = var});
  }

  std::vector<Edge>& edges_;
  std::vector<Group> groups_;
  absl::flat_hash_map<VarId, size_t> of_fused_;  // index in groups_: of the latest
  absl::flat_hash_map<VarId, size_t> part_of_;
};

void OrderCoalesced(const std::vector<Instruction>& instructions, std::vector<Edge>& edges) {
  CoalescedOrder order(edges);
  for (size_t i = 0; i < instructions.size(); ++i) {
    order.Visit(static_cast<InstrId>(i), instructions[i]);
  }
}

// Keeps of equal pairs the first, with the demands of all. REQUIRES: sorted by `from`.
void Merge(std::vector<Edge>::const_iterator begin, std::vector<Edge>::const_iterator end,
           std::vector<Edge>& merged) {
  for (auto edge = begin; edge != end; ++edge) {
    if (edge == begin || merged.back().from != edge->from) {
      merged.push_back(*edge);
      continue;
    }
    merged.back().memory = merged.back().memory || edge->memory;
    merged.back().host_reads = merged.back().host_reads || edge->host_reads;
  }
}

// Sorts by (to, from) and makes one edge of those between one pair: hazards come before implicit
// orders. `num_targets`: edges lead to less than that.
void SortAndMerge(std::vector<Edge>& edges, size_t num_targets) {
  std::vector<int32_t> begins(num_targets + 1, 0);
  for (const Edge& edge : edges) ++begins[edge.to + 1];
  for (size_t i = 0; i < num_targets; ++i) begins[i + 1] += begins[i];
  std::vector<Edge> sorted(edges.size());
  std::vector<int32_t> next(begins.begin(), begins.end() - 1);
  for (const Edge& edge : edges) sorted[next[edge.to]++] = edge;
  edges.clear();
  for (size_t i = 0; i < num_targets; ++i) {
    const auto begin = sorted.begin() + begins[i];
    const auto end = sorted.begin() + begins[i + 1];
    std::stable_sort(begin, end, [](const Edge& a, const Edge& b) { return a.from < b.from; });
    Merge(begin, end, edges);
  }
}

bool IsSeenOutside(const OpDef& def) {
  return def.side_effect && std::none_of(def.outputs.begin(), def.outputs.end(), [](const auto& s) {
           return (s.flags & kTensorArray) != 0;
         });
}

}  // namespace

bool IsCommunication(const Instruction& instruction) {
  const absl::string_view type = instruction.op_type;
  return type == "send" || type == "recv" || type == "send_v2" || type == "recv_v2" ||
         absl::StartsWith(type, "c_");
}

bool KeepsOrder(const Instruction& instruction, const std::vector<bool>& blocks) {
  if (IsSeenOutside(*instruction.def)) return true;
  const auto block = static_cast<size_t>(instruction.sub_block);
  return instruction.sub_block >= 0 && block < blocks.size() && blocks[block];
}

std::vector<bool> BlocksWithEffects(absl::Span<const Plan> plans) {
  std::vector<bool> found(plans.size(), false);
  std::vector<std::vector<size_t>> run_by(plans.size());
  std::vector<size_t> open;
  const auto mark = [&](size_t block) {
    if (!found[block]) open.push_back(block);
    found[block] = true;
  };
  for (size_t block = 1; block < plans.size(); ++block) {
    for (const Instruction& instruction : plans[block].instructions) {
      if (IsSeenOutside(*instruction.def)) mark(block);
      const auto inner = static_cast<size_t>(instruction.sub_block);
      if (instruction.sub_block >= 0 && inner < plans.size()) run_by[inner].push_back(block);
    }
  }
  while (!open.empty()) {
    const size_t block = open.back();
    open.pop_back();
    for (const size_t outer : run_by[block]) mark(outer);
  }
  return found;
}

std::vector<Edge> BuildDependencies(const std::vector<Instruction>& instructions,
                                    const std::vector<PlanVar>& vars, bool sequential,
                                    const std::vector<bool>& blocks_with_effects) {
  HazardBuilder hazards(instructions, vars);
  hazards.AddAll(0, [](int32_t) { return true; });
  std::vector<Edge> edges = hazards.Take();
  OrderCoalesced(instructions, edges);
  ChainInOrder(instructions, EdgeKind::kCommunication, IsCommunication, edges);
  OrderAfterSync(instructions, edges);
  OrderAfterRead(instructions, edges);
  ChainInOrder(
      instructions, EdgeKind::kSequential,
      [&](const Instruction& instruction) {
        return sequential || KeepsOrder(instruction, blocks_with_effects);
      },
      edges);
  SortAndMerge(edges, instructions.size());
  return edges;
}

std::vector<Edge> BuildCrossRunDependencies(const std::vector<Instruction>& instructions,
                                            const std::vector<PlanVar>& vars,
                                            const std::vector<bool>& keeps_memory) {
  const auto n = static_cast<InstrId>(instructions.size());
  const auto wanted = [&](int32_t storage) { return static_cast<bool>(keeps_memory[storage]); };
  HazardBuilder hazards(instructions, vars);
  hazards.AddAll(0, wanted);
  hazards.AddAll(n, wanted);
  std::vector<Edge> crossing;
  for (Edge edge : hazards.Take()) {
    if (!edge.memory || edge.from >= n || edge.to < n) continue;
    edge.to -= n;
    crossing.push_back(edge);
  }
  SortAndMerge(crossing, instructions.size());
  return crossing;
}

void AddStreamEdges(const std::vector<Instruction>& instructions, std::vector<Edge>& edges) {
  absl::flat_hash_map<int32_t, InstrId> last;  // by stream
  bool added = false;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i].place.on_host()) continue;
    const auto id = static_cast<InstrId>(i);
    if (const auto it = last.find(instructions[i].stream); it != last.end()) {
      edges.push_back(ImplicitEdge(it->second, id, EdgeKind::kStream));
      added = true;
    }
    last[instructions[i].stream] = id;
  }
  if (added) SortAndMerge(edges, instructions.size());
}

}  // namespace interp
