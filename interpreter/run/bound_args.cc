#include "interpreter/run/bound_args.h"

namespace interp {
namespace {

void BindSlots(const Plan& plan, absl::Span<Variable* const> variables, const VarIds& ids,
               const ArgCounts& counts, BoundArgs& args, BoundArgs::Ranges& slots) {
  size_t arg = 0;
  for (const int32_t count : counts) {
    slots.push_back({static_cast<int32_t>(args.tensors.size()), count});
    for (int32_t i = 0; i < count; ++i, ++arg) {
      Variable* variable = ids[arg] < 0 ? nullptr : variables[ids[arg]];
      args.variables.push_back(variable);
      args.tensors.push_back(variable == nullptr ? nullptr : &variable->tensor);
      args.constant.push_back(ids[arg] >= 0 && plan.vars[ids[arg]].constant);
    }
  }
}

}  // namespace

BoundArgs BindArgs(const Plan& plan, const Instruction& instruction,
                   absl::Span<Variable* const> variables) {
  BoundArgs args;
  const size_t num_args = instruction.inputs.size() + instruction.outputs.size();
  args.tensors.reserve(num_args);
  args.variables.reserve(num_args);
  BindSlots(plan, variables, instruction.inputs, instruction.input_counts, args, args.input_slots);
  BindSlots(plan, variables, instruction.outputs, instruction.output_counts, args,
            args.output_slots);
  return args;
}

}  // namespace interp
