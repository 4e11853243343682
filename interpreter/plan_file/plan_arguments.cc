#include "interpreter/plan_file/plan_arguments.h"

#include <algorithm>

#include "interpreter/analysis/variable_table.h"

namespace interp {
namespace {

const Slot* SlotNamed(const std::vector<Slot>& slots, absl::string_view name) {
  const auto slot =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.name == name; });
  return slot == slots.end() ? nullptr : &*slot;
}

absl::Status CheckSlotCounts(const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                             const ArgCounts& counts, absl::string_view side) {
  for (size_t i = 0; i < defs.size(); ++i) {
    const Slot* const slot = SlotNamed(slots, defs[i].name);
    const size_t most = slot == nullptr ? 0 : slot->args.size();
    const auto count = static_cast<size_t>(counts[i]);
    const bool may_be_none = (defs[i].flags & (kOptional | kOfSubBlock)) != 0;
    if (count == most || (count == 0 && may_be_none)) continue;
    return InvalidArgument(side, " '", defs[i].name, "' has ", count, " arguments, in the program ",
                           most);
  }
  return absl::OkStatus();
}

// Outputs that are left out are CheckOutputs' part.
absl::Status CheckSide(const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                       const VarIds& args, const ArgCounts& counts, const Plan& plan, bool inserted,
                       absl::string_view side) {
  INTERP_RETURN_IF_ERROR(CheckSlotCounts(slots, defs, counts, side));
  int arg = 0;
  for (size_t slot = 0; slot < defs.size(); ++slot) {
    if (counts[slot] == 0) continue;
    const VarId* const in_op = SlotNamed(slots, defs[slot].name)->args.data();
    for (int32_t i = 0; i < counts[slot]; ++i, ++arg) {
      const VarId expected = in_op[i] < 0 || inserted ? in_op[i] : FindVar(plan, in_op[i]);
      const VarId id = args[arg];
      const bool own = expected >= 0 && id >= plan.num_program_vars;
      if (id == expected || own || (id < 0 && side == "output")) continue;
      return InvalidArgument("argument ", i, " of ", side, " '", defs[slot].name, "' is ",
                             id < 0 ? "left out" : absl::StrCat("'", plan.vars[id].name, "'"),
                             ", unlike that of the op");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOpArguments(const Op& op, const Plan& plan, const Instruction& instruction) {
  const OpDef& def = *instruction.def;
  const bool inserted = instruction.op_index < 0;
  INTERP_RETURN_IF_ERROR(CheckSide(op.inputs, def.inputs, instruction.inputs,
                                   instruction.input_counts, plan, inserted, "input"));
  return CheckSide(op.outputs, def.outputs, instruction.outputs, instruction.output_counts, plan,
                   inserted, "output");
}

absl::Status CheckDeclaredShares(const Plan& plan, const Instruction& instruction) {
  for (const InplacePair& pair : instruction.share) {
    const VarId written = instruction.outputs[pair.output];
    if (plan.vars[written].persistable && instruction.inputs[pair.input] != written) {
      return InvalidArgument("output '", plan.vars[written].name,
                             "' outlives the run, but would use the memory of input ", pair.input);
    }
    bool declared = false;
    for (int in = 0; in < static_cast<int>(instruction.inputs.size()); ++in) {
      declared = declared ||
                 (instruction.inputs[in] == instruction.inputs[pair.input] &&
                  !IsHiddenInput(instruction, in) && DeclaresShare(instruction, in, pair.output));
    }
    if (declared) continue;
    return InvalidArgument("output argument ", pair.output, " would use the memory of input ",
                           pair.input, ", which its kernel does not");
  }
  return absl::OkStatus();
}

absl::Status CheckCaptures(const Plan& plan, const Instruction& instruction, const Plan& inner) {
  size_t in = instruction.inputs.size() - static_cast<size_t>(instruction.input_counts.back());
  size_t out = instruction.outputs.size() - static_cast<size_t>(instruction.output_counts.back());
  for (const Capture& capture : inner.captures) {
    const VarId captured = FindVar(plan, inner.vars[capture.var].program_var);
    const VarId read = capture.read ? instruction.inputs[in++] : captured;
    const VarId written = capture.written ? instruction.outputs[out++] : captured;
    const bool own = !capture.written && read >= plan.num_program_vars;
    if (captured >= 0 && (read == captured || own) && written == captured) continue;
    return InvalidArgument("block ", inner.block, " does not capture the '",
                           inner.vars[capture.var].name, "' of this one");
  }
  return absl::OkStatus();
}

}  // namespace interp
