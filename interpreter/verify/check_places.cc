#include "core/device/device.h"
#include "interpreter/verify/checks.h"

namespace interp::verify {
namespace {

// The source of memcpy_p2p may lie on another device of the kind.
bool CopiesFromPeer(const Plan& plan, const Instruction& instruction, VarId var) {
  return instruction.op_type == "memcpy_p2p" && var >= 0 &&
         ArePeers(plan.vars[var].place, instruction.place);
}

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
    for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
      const bool touches = (InputFlags(instruction, arg) & kNoNeedBuffer) == 0;
      if (!touches || IsHiddenInput(instruction, arg)) continue;
      if (CopiesFromPeer(plan, instruction, instruction.inputs[arg])) continue;
      const Place wanted = IsHostInput(instruction, arg) ? Place{} : instruction.place;
      CheckPlace(plan, id, instruction.inputs[arg], wanted, "reads", report);
    }
    for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
      if (IsHiddenOutput(instruction, arg)) continue;
      CheckPlace(plan, id, instruction.outputs[arg], instruction.place, "writes", report);
    }
  }
}

void CheckCaptures(const Plan& plan, VerifyReport& report) {
  std::vector<bool> read(plan.vars.size(), false);
  std::vector<bool> written(plan.vars.size(), false);
  for (const Capture& capture : plan.captures) {
    read[capture.var] = capture.read;
    written[capture.var] = capture.written;
  }
  const auto check = [&](InstrId id, VarId var, const std::vector<bool>& said, const char* does) {
    if (var < 0 || !plan.vars[var].captured || said[var]) return;
    Add(report, {ViolationKind::kCapture, id, -1, var, false,
                 absl::StrCat("#", id, " ", does,
                              " it, but the block is not said to: whoever runs the block does not "
                              "know")});
  };
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    for (const VarId var : plan.instructions[i].inputs) check(id, var, read, "reads");
    for (const VarId var : plan.instructions[i].outputs) check(id, var, written, "writes");
  }
}

}  // namespace interp::verify
