#include "interpreter/analysis/dependencies.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "interpreter/analysis/storage.h"

namespace interp {
namespace {

constexpr InstrId kNone = -1;

// Last writer and the readers since then, of one variable or storage.
struct Accesses {
  InstrId writer = kNone;
  std::vector<InstrId> readers;
};

class HazardBuilder {
 public:
  HazardBuilder(const std::vector<Instruction>& instructions, const std::vector<PlanVar>& vars)
      : instructions_(instructions),
        vars_(vars),
        by_var_(vars.size()),
        by_storage_(vars.size()),
        shared_(SharedStorages(vars)) {}

  std::vector<Edge> Build() {
    for (size_t i = 0; i < instructions_.size(); ++i) Add(static_cast<InstrId>(i));
    return std::move(edges_);
  }

 private:
  // By storage id: whether more than one variable has it.
  static std::vector<bool> SharedStorages(const std::vector<PlanVar>& vars) {
    std::vector<bool> shared(vars.size(), false);
    for (size_t id = 0; id < vars.size(); ++id) {
      if (vars[id].storage != static_cast<int32_t>(id)) shared[vars[id].storage] = true;
    }
    return shared;
  }

  void Add(InstrId i) {
    const Instruction& instruction = instructions_[i];
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0) continue;
      Read(i, id, by_var_[id]);
      const int flags = instruction.def->inputs[InputSlotOf(instruction, arg)].flags;
      if (shared_[vars_[id].storage] && (flags & kNoNeedBuffer) == 0) {
        Read(i, id, by_storage_[vars_[id].storage]);
      }
    }
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0) continue;
      if (shared_[vars_[id].storage] && !IsViewOutput(instruction, arg)) {
        Write(i, id, by_storage_[vars_[id].storage]);
      }
      Write(i, id, by_var_[id]);
    }
  }

  static bool IsViewOutput(const Instruction& instruction, size_t arg) {
    return std::any_of(
        instruction.share.begin(), instruction.share.end(), [&](const InplacePair& pair) {
          return pair.output == static_cast<int32_t>(arg) && IsView(instruction, pair);
        });
  }

  void Read(InstrId i, VarId var, Accesses& accesses) {
    if (accesses.writer != kNone) AddEdge(accesses.writer, i, EdgeKind::kReadAfterWrite, var);
    if (accesses.readers.empty() || accesses.readers.back() != i) accesses.readers.push_back(i);
  }

  void Write(InstrId i, VarId var, Accesses& accesses) {
    bool read_by_others = false;
    for (const InstrId reader : accesses.readers) {
      if (reader == i) continue;
      AddEdge(reader, i, EdgeKind::kWriteAfterRead, var);
      read_by_others = true;
    }
    if (!read_by_others && accesses.writer != kNone) {
      AddEdge(accesses.writer, i, EdgeKind::kWriteAfterWrite, var);
    }
    accesses.readers.clear();
    accesses.writer = i;
  }

  void AddEdge(InstrId from, InstrId to, EdgeKind kind, VarId var) {
    if (from != to) edges_.push_back({from, to, kind, var, false});
  }

  const std::vector<Instruction>& instructions_;
  const std::vector<PlanVar>& vars_;
  std::vector<Accesses> by_var_;
  std::vector<Accesses> by_storage_;
  const std::vector<bool> shared_;
  std::vector<Edge> edges_;
};

// Paddle's test for communication ops, but for the accident that it takes any type with "c_" in it.
bool IsCommunication(const Instruction& instruction) {
  const std::string& type = instruction.op_type;
  return type == "send" || type == "recv" || type == "send_v2" || type == "recv_v2" ||
         type.rfind("c_", 0) == 0;
}

template <typename Predicate>
void ChainInOrder(const std::vector<Instruction>& instructions, EdgeKind kind, Predicate is_member,
                  std::vector<Edge>& edges) {
  InstrId previous = kNone;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (!is_member(instructions[i])) continue;
    if (previous != kNone) edges.push_back({previous, static_cast<InstrId>(i), kind, -1, false});
    previous = static_cast<InstrId>(i);
  }
}

// After a `c_sync_comm_stream`, everything waits for the latest one.
void OrderAfterSync(const std::vector<Instruction>& instructions, std::vector<Edge>& edges) {
  InstrId sync = kNone;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (sync != kNone) edges.push_back({sync, id, EdgeKind::kCommunication, -1, false});
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
    if (read != kNone && !waits[i]) edges.push_back({read, id, EdgeKind::kRead, -1, false});
    if (instructions[i].op_type == "read") read = id;
  }
}

VarId ArgumentOf(const Instruction& instruction, absl::string_view output_slot) {
  int arg = 0;
  for (size_t s = 0; s < instruction.output_counts.size(); ++s) {
    if (instruction.def->outputs[s].name == output_slot) {
      return instruction.output_counts[s] > 0 ? instruction.outputs[arg] : -1;
    }
    arg += instruction.output_counts[s];
  }
  return -1;
}

// coalesce_tensor lays its Outputs side by side inside FusedOutput: whoever reads FusedOutput reads
// what later ops wrote to the parts, and readers of the parts afterwards see its result.
void OrderCoalesced(const std::vector<Instruction>& instructions, std::vector<Edge>& edges) {
  for (size_t c = 0; c < instructions.size(); ++c) {
    if (instructions[c].op_type != "coalesce_tensor") continue;
    const VarId fused = ArgumentOf(instructions[c], "FusedOutput");
    const auto is_part = [&](VarId id) {
      const std::vector<VarId>& parts = instructions[c].outputs;
      return id >= 0 && id != fused && std::find(parts.begin(), parts.end(), id) != parts.end();
    };
    InstrId reader = kNone;
    std::vector<InstrId> writers;
    for (size_t i = c + 1; i < instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      const std::vector<VarId>& in = instructions[i].inputs;
      const std::vector<VarId>& out = instructions[i].outputs;
      if (reader == kNone && std::find(in.begin(), in.end(), fused) != in.end()) {
        reader = id;
        for (const InstrId w : writers) edges.push_back({w, id, EdgeKind::kCoalesce, fused, false});
      } else if (reader == kNone && std::any_of(out.begin(), out.end(), is_part)) {
        writers.push_back(id);
      } else if (reader != kNone && std::any_of(in.begin(), in.end(), is_part)) {
        edges.push_back({reader, id, EdgeKind::kCoalesce, fused, false});
      }
    }
  }
}

// Sorts by (to, from) and keeps the first of equal pairs: hazards come before implicit orders.
void SortAndDeduplicate(std::vector<Edge>& edges, size_t num_instructions) {
  std::vector<int32_t> begins(num_instructions + 1, 0);
  for (const Edge& edge : edges) ++begins[edge.to + 1];
  for (size_t i = 0; i < num_instructions; ++i) begins[i + 1] += begins[i];
  std::vector<Edge> sorted(edges.size());
  std::vector<int32_t> next(begins.begin(), begins.end() - 1);
  for (const Edge& edge : edges) sorted[next[edge.to]++] = edge;
  edges.clear();
  for (size_t i = 0; i < num_instructions; ++i) {
    const auto begin = sorted.begin() + begins[i];
    const auto end = sorted.begin() + begins[i + 1];
    std::stable_sort(begin, end, [](const Edge& a, const Edge& b) { return a.from < b.from; });
    std::unique_copy(begin, end, std::back_inserter(edges),
                     [](const Edge& a, const Edge& b) { return a.from == b.from; });
  }
}

}  // namespace

absl::string_view Name(EdgeKind kind) {
  constexpr absl::string_view kNames[] = {
      "raw", "war", "waw", "random", "read", "communication", "coalesce", "sequential", "stream"};
  return kNames[static_cast<int>(kind)];
}

absl::string_view Name(RunType type) {
  constexpr absl::string_view kNames[] = {"direct", "synchronize", "event"};
  return kNames[static_cast<int>(type)];
}

std::vector<Edge> BuildDependencies(const std::vector<Instruction>& instructions,
                                    const std::vector<PlanVar>& vars, bool sequential) {
  std::vector<Edge> edges = HazardBuilder(instructions, vars).Build();
  OrderCoalesced(instructions, edges);
  ChainInOrder(instructions, EdgeKind::kCommunication, IsCommunication, edges);
  OrderAfterSync(instructions, edges);
  ChainInOrder(
      instructions, EdgeKind::kRandom, [](const Instruction& i) { return i.def->random; }, edges);
  OrderAfterRead(instructions, edges);
  if (sequential) {
    ChainInOrder(
        instructions, EdgeKind::kSequential, [](const Instruction&) { return true; }, edges);
  }
  SortAndDeduplicate(edges, instructions.size());
  return edges;
}

}  // namespace interp
