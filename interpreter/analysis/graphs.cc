#include "interpreter/analysis/graphs.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/device/device.h"
#include "interpreter/analysis/streams.h"

namespace interp {
namespace {

bool UsesVariables(const Plan& plan, const VarIds& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](VarId id) {
    return id >= 0 && plan.vars[id].kind != VarKind::kLodTensor;
  });
}

// Whether it reads memory of a place of which is(place) holds.
template <typename Is>
bool ReadsMemoryOf(const Plan& plan, const Instruction& instruction, const Is& is) {
  for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
    const VarId id = instruction.inputs[arg];
    const int flags = InputFlags(instruction, static_cast<int>(arg));
    if (id >= 0 && (flags & kNoNeedBuffer) == 0 && is(plan.vars[id].place)) return true;
  }
  return false;
}

bool TouchesHost(const Plan& plan, const Instruction& instruction) {
  if (ReadsMemoryOf(plan, instruction, [](Place place) { return place.on_host(); })) return true;
  return std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                     [&](VarId id) { return id >= 0 && plan.vars[id].place.on_host(); });
}

bool ReadsPeer(const Plan& plan, const Instruction& instruction) {
  return ReadsMemoryOf(plan, instruction,
                       [&](Place place) { return ArePeers(place, instruction.place); });
}

bool BlocksHost(const Instruction& instruction) {
  return std::any_of(instruction.waits.begin(), instruction.waits.end(),
                     [](const EventWait& wait) { return wait.blocks_host; });
}

// The first by priority, then by program order.
using Ready = std::pair<int32_t, InstrId>;
using ReadyQueue = std::priority_queue<Ready, std::vector<Ready>, std::greater<>>;

class Orderer {
 public:
  Orderer(const Plan& plan, const std::vector<bool>& refused)
      : plan_(plan), waiting_(plan.dep_counts), capturable_(plan.streams.size()) {
    streams_.reserve(plan.instructions.size());
    for (size_t i = 0; i < plan.instructions.size(); ++i) {
      const Instruction& instruction = plan.instructions[i];
      const bool out = (!refused.empty() && refused[i]) || !WhyInNoGraph(plan, instruction).empty();
      streams_.push_back(out ? -1 : instruction.stream);
      if (waiting_[i] == 0) Push(static_cast<InstrId>(i));
    }
  }

  GraphOrder Run() {
    while (result_.order.size() < plan_.instructions.size()) {
      while (!others_.empty()) Take(others_);
      if (!TakeSegment() && !blocking_.empty()) Take(blocking_);
    }
    return std::move(result_);
  }

 private:
  void Push(InstrId id) {
    ReadyQueue& queue = streams_[id] >= 0                    ? capturable_[streams_[id]]
                        : BlocksHost(plan_.instructions[id]) ? blocking_
                                                             : others_;
    queue.emplace(plan_.instructions[id].priority, id);
  }

  void Take(ReadyQueue& queue) {
    const InstrId id = queue.top().second;
    queue.pop();
    result_.order.push_back(id);
    for (const InstrId next : plan_.successors[id]) {
      if (--waiting_[next] == 0) Push(next);
    }
  }

  // All that is ready on the stream whose first instruction is the best, and what becomes ready
  // there meanwhile. False where nothing is.
  bool TakeSegment() {
    int32_t best = -1;
    for (size_t s = 0; s < capturable_.size(); ++s) {
      if (capturable_[s].empty()) continue;
      if (best < 0 || capturable_[s].top() < capturable_[best].top())
        best = static_cast<int32_t>(s);
    }
    if (best < 0) return false;
    const auto begin = static_cast<int32_t>(result_.order.size());
    while (!capturable_[best].empty()) Take(capturable_[best]);
    const auto end = static_cast<int32_t>(result_.order.size());
    if (end - begin > 1) result_.segments.push_back({.begin = begin, .end = end, .stream = best});
    return true;
  }

  const Plan& plan_;
  std::vector<int32_t> waiting_;  // by InstrId; predecessors left
  std::vector<int32_t> streams_;  // by InstrId; -1: not to be captured
  ReadyQueue others_;
  ReadyQueue blocking_;
  std::vector<ReadyQueue> capturable_;  // by stream
  GraphOrder result_;
};

}  // namespace

bool UsesGpus(const Plan& plan) {
  return std::any_of(plan.streams.begin(), plan.streams.end(), [](const PlanStream& stream) {
    return stream.place.kind == PlaceKind::kCuda;
  });
}

absl::string_view WhyInNoGraph(const Plan& plan, const Instruction& instruction) {
  if (instruction.place.kind != PlaceKind::kCuda) return "does not run on a GPU";
  if (SpeaksWithRanks(instruction)) return "speaks with other ranks";
  if (UsesVariables(plan, instruction.inputs) || UsesVariables(plan, instruction.outputs)) {
    return "uses selected rows or an array";
  }
  if (TouchesHost(plan, instruction)) return "uses memory of the host";
  if (ReadsPeer(plan, instruction)) return "reads memory of another GPU";
  if (instruction.dynamic_shape || instruction.def->dynamic_outputs) {
    return "its shapes may differ from run to run";
  }
  return BlocksHost(instruction) ? "the host waits for what it needs" : "";
}

std::vector<std::string> TypesInNoGraph(const Plan& plan) {
  std::vector<std::string> types;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.place.kind != PlaceKind::kCuda || instruction.op_index < 0) continue;
    const absl::string_view why = WhyInNoGraph(plan, instruction);
    if (!why.empty()) types.push_back(absl::StrCat(instruction.op_type, " (", why, ")"));
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

GraphOrder FindGraphs(const Plan& plan, const std::vector<bool>& refused) {
  return Orderer(plan, refused).Run();
}

}  // namespace interp
