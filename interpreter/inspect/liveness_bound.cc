#include "interpreter/inspect/liveness_bound.h"

#include <algorithm>
#include <numeric>

namespace interp {
namespace {

constexpr int32_t kNever = -1;

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// When a variable's memory is used, as positions in Plan::order.
struct Life {
  int32_t first = kNever;  // written
  int32_t last = kNever;
  uint64_t bytes = 0;  // 0 for what lies elsewhere
};

class Lives {
 public:
  explicit Lives(const InterpreterCore& core)
      : plan_(core.plan()), variables_(core.variables()), lives_(plan_.vars.size()) {
    elsewhere_.resize(plan_.vars.size(), false);
    for (size_t var = 0; var < plan_.vars.size(); ++var) elsewhere_[var] = IsElsewhere(var);
    for (size_t at = 0; at < plan_.order.size(); ++at) Note(static_cast<int32_t>(at));
  }
  const std::vector<Life>& by_var() const { return lives_; }

 private:
  bool IsElsewhere(size_t var) const {
    const PlanVar& v = plan_.vars[var];
    return v.kind != VarKind::kLodTensor || v.persistable || !v.place.on_host();
  }

  void Note(int32_t at) {
    const Instruction& instruction = plan_.instructions[plan_.order[at]];
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      if (!NeedsValue(plan_, instruction, static_cast<int>(arg))) continue;
      lives_[instruction.inputs[arg]].last = at;
    }
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0) continue;
      if (TakesMemoryFromElsewhere(instruction, arg)) elsewhere_[id] = true;
      if (id == plan_.fetch_list) KeepToTheEnd(instruction);
      if (!elsewhere_[id]) Write(id, at);
    }
  }

  // A fed tensor, or a view of one or of a parameter.
  bool TakesMemoryFromElsewhere(const Instruction& instruction, size_t arg) const {
    if (plan_.feed_list >= 0 && !instruction.inputs.empty() &&
        instruction.inputs[0] == plan_.feed_list) {
      return true;
    }
    return std::any_of(
        instruction.share.begin(), instruction.share.end(), [&](const InplacePair& pair) {
          return pair.output == static_cast<int32_t>(arg) && IsView(instruction, pair) &&
                 elsewhere_[instruction.inputs[pair.input]];
        });
  }

  void KeepToTheEnd(const Instruction& fetch) {
    for (const VarId id : fetch.inputs) {
      if (id >= 0) lives_[id].last = static_cast<int32_t>(plan_.order.size()) - 1;
    }
  }

  void Write(VarId id, int32_t at) {
    Life& life = lives_[id];
    const Tensor& tensor = variables_[id]->tensor;
    if (life.first == kNever) {
      life.first = at;
      const bool has_size = tensor.shape.CheckedNumel().has_value();
      life.bytes = has_size ? RoundUp(tensor.size_bytes()) : 0;
    }
    life.last = std::max(life.last, at);
  }

  const Plan& plan_;
  const absl::Span<Variable* const> variables_;
  std::vector<Life> lives_;      // by VarId
  std::vector<bool> elsewhere_;  // by VarId: memory that no run allocates
};

// The bytes alive, storage by storage: the largest of the live variables of each.
class AliveBytes {
 public:
  AliveBytes(const Plan& plan, const std::vector<Life>& lives)
      : plan_(plan), lives_(lives), live_(plan.vars.size()) {}

  void Add(VarId id) {
    Change(id, [&](VarIds& live) { live.push_back(id); });
  }
  void Remove(VarId id) {
    Change(id, [&](VarIds& live) {
      live.erase(std::remove(live.begin(), live.end(), id), live.end());
    });
  }
  uint64_t total() const { return total_; }

 private:
  template <typename Edit>
  void Change(VarId id, const Edit& edit) {
    VarIds& live = live_[plan_.vars[id].storage];
    total_ -= Largest(live);
    edit(live);
    total_ += Largest(live);
  }
  uint64_t Largest(const VarIds& live) const {
    uint64_t largest = 0;
    for (const VarId id : live) largest = std::max(largest, lives_[id].bytes);
    return largest;
  }

  const Plan& plan_;
  const std::vector<Life>& lives_;
  std::vector<VarIds> live_;  // by storage; few at once
  uint64_t total_ = 0;
};

// By position in Plan::order: the variables of which it is the first or the last, in ascending
// order.
IdLists VarsAt(const std::vector<Life>& lives, int32_t Life::*end, size_t positions) {
  IdLists lists;
  lists.begins.assign(positions + 1, 0);
  for (const Life& life : lives) {
    if (life.bytes > 0) ++lists.begins[life.*end + 1];
  }
  std::partial_sum(lists.begins.begin(), lists.begins.end(), lists.begins.begin());
  lists.ids.resize(static_cast<size_t>(lists.begins.back()));
  std::vector<int32_t> next(lists.begins.begin(), lists.begins.end() - 1);
  for (size_t var = 0; var < lives.size(); ++var) {
    if (lives[var].bytes > 0) lists.ids[next[lives[var].*end]++] = static_cast<VarId>(var);
  }
  return lists;
}

}  // namespace

std::vector<uint64_t> AliveBytesInOrder(const InterpreterCore& core) {
  const Plan& plan = core.plan();
  const Lives lives(core);
  const IdLists first = VarsAt(lives.by_var(), &Life::first, plan.order.size());
  const IdLists last = VarsAt(lives.by_var(), &Life::last, plan.order.size());
  AliveBytes alive(plan, lives.by_var());
  std::vector<uint64_t> bytes;
  bytes.reserve(plan.order.size());
  for (size_t at = 0; at < plan.order.size(); ++at) {
    for (const VarId var : first[static_cast<InstrId>(at)]) alive.Add(var);
    bytes.push_back(alive.total());
    for (const VarId var : last[static_cast<InstrId>(at)]) alive.Remove(var);
  }
  return bytes;
}

LivenessBound FindLivenessBound(const InterpreterCore& core) {
  const std::vector<uint64_t> bytes = AliveBytesInOrder(core);
  LivenessBound bound;
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] > bound.bytes) bound = {.bytes = bytes[at], .at = core.plan().order[at]};
  }
  return bound;
}

}  // namespace interp
