#include "interpreter/analysis/garbage_collection.h"

#include <algorithm>

namespace interp {
namespace {

// Successors looked at per use, to find out that the use is followed by another one.
constexpr int kLooksPerUse = 16;

bool IsCollectable(const PlanVar& var) {
  switch (var.kind) {
    case VarKind::kLodTensor:
    case VarKind::kLodTensorArray:
    case VarKind::kSelectedRows:
    case VarKind::kLodRankTable:
    case VarKind::kStepScopes:
      return !var.persistable && !var.captured && !var.folded;
    default:
      return false;
  }
}

// The uses of each variable that no write follows: the readers since its last writer, or that
// writer when nobody has read. Program order is a legal order, and conflicting uses are ordered as
// in the program, so one of these is the last use in every run.
class LastUses {
 public:
  explicit LastUses(const Plan& plan) : plan_(plan), writer_(plan.vars.size(), -1) {
    collectable_.reserve(plan.vars.size());
    for (const PlanVar& var : plan.vars) collectable_.push_back(IsCollectable(var));
    for (const VarId var : plan.results) collectable_[var] = false;
    for (const SavedVar& saved : plan.saved) collectable_[saved.var] = false;
    first_reader_.assign(plan.vars.size(), -1);
    for (size_t i = 0; i < plan.instructions.size(); ++i) Note(static_cast<InstrId>(i));
  }

  // Calls visit(instruction) for each last use of `var`, which is collectable.
  template <typename Visit>
  void ForEach(VarId var, const Visit& visit) const {
    if (first_reader_[var] < 0 && writer_[var] >= 0) visit(writer_[var]);
    for (int32_t at = first_reader_[var]; at >= 0; at = readers_[at].next) {
      visit(readers_[at].instruction);
    }
  }
  bool IsCollected(VarId var) const { return collectable_[var]; }

 private:
  // Links of a list per variable, the latest first.
  struct Reader {
    InstrId instruction;
    int32_t next;
  };

  void Note(InstrId id) {
    const Instruction& instruction = plan_.instructions[id];
    for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
      const VarId var = instruction.inputs[arg];
      if (!NeedsValue(plan_, instruction, arg) || !collectable_[var]) continue;
      const int32_t latest = first_reader_[var];
      if (latest >= 0 && readers_[latest].instruction == id) continue;
      readers_.push_back({id, latest});
      first_reader_[var] = static_cast<int32_t>(readers_.size()) - 1;
    }
    for (const VarId var : instruction.outputs) {
      if (var < 0 || !collectable_[var]) continue;
      writer_[var] = id;
      first_reader_[var] = -1;
    }
  }

  const Plan& plan_;
  std::vector<bool> collectable_;      // by VarId
  std::vector<InstrId> writer_;        // by VarId: the last
  std::vector<int32_t> first_reader_;  // by VarId: index into readers_
  std::vector<Reader> readers_;
};

// Lists of variables by instruction, from pairs in any order of instructions.
IdLists ByInstruction(size_t num_instructions,
                      const std::vector<std::pair<InstrId, VarId>>& pairs) {
  IdLists lists;
  lists.begins.assign(num_instructions + 1, 0);
  for (const auto& [id, var] : pairs) ++lists.begins[id + 1];
  for (size_t i = 0; i < num_instructions; ++i) lists.begins[i + 1] += lists.begins[i];
  lists.ids.resize(pairs.size());
  std::vector<int32_t> next(lists.begins.begin(), lists.begins.end() - 1);
  for (const auto& [id, var] : pairs) lists.ids[next[id]++] = var;
  return lists;
}

// Fills gc_check and ref_counts.
void CountLastUses(const LastUses& uses, Plan& plan) {
  std::vector<std::pair<InstrId, VarId>> counted;
  std::vector<VarId> member(plan.instructions.size(), -1);  // of whose last uses, lately
  for (size_t v = 0; v < plan.vars.size(); ++v) {
    const auto var = static_cast<VarId>(v);
    if (!uses.IsCollected(var)) continue;
    uses.ForEach(var, [&](InstrId id) { member[id] = var; });
    uses.ForEach(var, [&](InstrId id) {
      const absl::Span<const InstrId> next = plan.successors[id];
      const auto looked_at = next.first(std::min<size_t>(next.size(), kLooksPerUse));
      if (std::any_of(looked_at.begin(), looked_at.end(),
                      [&](InstrId s) { return member[s] == var; })) {
        return;
      }
      counted.emplace_back(id, var);
      ++plan.ref_counts[var];
    });
  }
  plan.gc_check = ByInstruction(plan.instructions.size(), counted);
}

// Fills frees_in_order.
void FindFreesInOrder(const LastUses& uses, Plan& plan) {
  std::vector<int32_t> position(plan.instructions.size());
  for (size_t at = 0; at < plan.order.size(); ++at) {
    position[plan.order[at]] = static_cast<int32_t>(at);
  }
  std::vector<std::pair<InstrId, VarId>> frees;
  for (size_t v = 0; v < plan.vars.size(); ++v) {
    const auto var = static_cast<VarId>(v);
    if (!uses.IsCollected(var)) continue;
    int32_t last = -1;
    uses.ForEach(var, [&](InstrId id) { last = std::max(last, position[id]); });
    if (last >= 0) frees.emplace_back(plan.order[last], var);
  }
  plan.frees_in_order = ByInstruction(plan.instructions.size(), frees);
}

}  // namespace

void PlanGarbageCollection(Plan& plan) {
  plan.ref_counts.assign(plan.vars.size(), 0);
  const LastUses uses(plan);
  CountLastUses(uses, plan);
  FindFreesInOrder(uses, plan);
}

}  // namespace interp
