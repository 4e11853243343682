#include "interpreter/analysis/garbage_collection.h"

#include <algorithm>

namespace interp {
namespace {

bool IsCollectable(const PlanVar& var) {
  return !var.persistable && var.kind == VarKind::kLodTensor;
}

// The variables an instruction uses, each once.
std::vector<VarId> Uses(const Plan& plan, const Instruction& instruction) {
  std::vector<VarId> uses;
  const auto add = [&](VarId id) {
    if (id >= 0 && IsCollectable(plan.vars[id])) uses.push_back(id);
  };
  for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
    const SlotDef& slot = instruction.def->inputs[InputSlotOf(instruction, arg)];
    if ((slot.flags & kNoNeedBuffer) == 0) add(instruction.inputs[arg]);
  }
  for (const VarId id : instruction.outputs) add(id);
  std::sort(uses.begin(), uses.end());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  return uses;
}

}  // namespace

void PlanGarbageCollection(Plan& plan) {
  const size_t n = plan.instructions.size();
  std::vector<std::vector<VarId>> uses(n);
  for (size_t i = 0; i < n; ++i) uses[i] = Uses(plan, plan.instructions[i]);

  plan.gc_check.assign(n, {});
  plan.ref_counts.assign(plan.vars.size(), 0);
  for (size_t i = 0; i < n; ++i) {
    const absl::Span<const InstrId> next = plan.successors[static_cast<InstrId>(i)];
    for (const VarId id : uses[i]) {
      const bool used_next = std::any_of(next.begin(), next.end(), [&](InstrId s) {
        return std::binary_search(uses[s].begin(), uses[s].end(), id);
      });
      if (used_next) continue;
      plan.gc_check[i].push_back(id);
      ++plan.ref_counts[id];
    }
  }

  plan.frees_in_order.assign(n, {});
  std::vector<bool> freed(plan.vars.size(), false);
  for (auto it = plan.order.rbegin(); it != plan.order.rend(); ++it) {
    for (const VarId id : uses[*it]) {
      if (freed[id]) continue;
      freed[id] = true;
      plan.frees_in_order[*it].push_back(id);
    }
  }
}

}  // namespace interp
