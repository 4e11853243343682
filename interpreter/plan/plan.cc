#include "interpreter/plan/plan.h"

#include "core/program_print.h"

namespace interp {

absl::string_view Name(EdgeKind kind) {
  constexpr absl::string_view kNames[] = {"raw",           "war",      "waw",        "read",
                                          "communication", "coalesce", "sequential", "stream"};
  return kNames[static_cast<int>(kind)];
}

absl::string_view Name(RunType type) {
  constexpr absl::string_view kNames[] = {"direct", "synchronize", "event"};
  return kNames[static_cast<int>(type)];
}

InstrRef FindInstruction(absl::Span<const Plan> plans, int32_t number) {
  for (const Plan& plan : plans) {
    const int32_t id = number - plan.first_number;
    if (id >= 0 && id < static_cast<int32_t>(plan.instructions.size())) return {&plan, id};
  }
  return {};
}

std::string VarText(const Plan& plan, VarId id) {
  return id < 0 ? std::string(kEmptyVarName) : NameText(plan.vars[id].name);
}

int32_t CountInstructions(absl::Span<const Plan> plans) {
  int32_t count = 0;
  for (const Plan& plan : plans) count += static_cast<int32_t>(plan.instructions.size());
  return count;
}

bool NeedsValue(const Plan& plan, const Instruction& instruction, int arg) {
  const VarId id = instruction.inputs[arg];
  if (id < 0) return false;
  return plan.vars[id].kind != VarKind::kLodTensor ||
         (InputFlags(instruction, arg) & kNoNeedBuffer) == 0;
}

}  // namespace interp
