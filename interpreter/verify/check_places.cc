#include "interpreter/verify/checks.h"

namespace interp::verify {
namespace {

bool CopiesBetweenPlaces(const Instruction& instruction) {
  return instruction.op_type == "memcpy_h2d" || instruction.op_type == "memcpy_d2h";
}

void CheckPlace(const Plan& plan, InstrId id, VarId var, Place wanted, absl::string_view does,
                VerifyReport& report) {
  if (var < 0 || plan.vars[var].kind != VarKind::kLodTensor || plan.vars[var].place == wanted) {
    return;
  }
  Add(report, {ViolationKind::kPlace, id, -1, var, false,
               absl::StrCat("#", id, " ", does, " it in memory of ", Name(wanted),
                            ", but it lies in memory of ", Name(plan.vars[var].place))});
}

}  // namespace

void CheckPlaces(const Plan& plan, VerifyReport& report) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (CopiesBetweenPlaces(instruction)) continue;
    const auto id = static_cast<InstrId>(i);
    for (size_t a = 0; a < instruction.inputs.size(); ++a) {
      const auto arg = static_cast<int>(a);
      const SlotDef& slot = instruction.def->inputs[InputSlotOf(instruction, arg)];
      if ((slot.flags & kNoNeedBuffer) != 0) continue;
      const Place wanted = IsHostInput(instruction, arg) ? Place{} : instruction.place;
      CheckPlace(plan, id, instruction.inputs[a], wanted, "reads", report);
    }
    for (const VarId var : instruction.outputs) {
      CheckPlace(plan, id, var, instruction.place, "writes", report);
    }
  }
}

}  // namespace interp::verify
