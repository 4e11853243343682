#include "interpreter/inspect/instruction_cost.h"

#include <algorithm>

#include "interpreter/run/bound_args.h"

namespace interp {
namespace {

// Shapes of a run that has failed may be anything.
bool HasSize(const Tensor& tensor) { return tensor.shape.CheckedNumel().has_value(); }

bool SharesMemory(const Plan& plan, const Instruction& instruction) {
  if (instruction.sub_block >= 0) return true;
  const auto is_array = [&](VarId id) {
    return id >= 0 && plan.vars[id].kind != VarKind::kLodTensor;
  };
  const auto is_view = [&](const InplacePair& pair) { return IsView(instruction, pair); };
  return std::any_of(instruction.inputs.begin(), instruction.inputs.end(), is_array) ||
         std::any_of(instruction.outputs.begin(), instruction.outputs.end(), is_array) ||
         std::any_of(instruction.share.begin(), instruction.share.end(), is_view);
}

int64_t BytesOf(const Plan& plan, const Instruction& instruction, const BoundArgs& args) {
  if (SharesMemory(plan, instruction)) return 0;
  double bytes = 0;
  const auto num_inputs = static_cast<int>(instruction.inputs.size());
  for (int arg = 0; arg < static_cast<int>(args.tensors.size()); ++arg) {
    const Tensor* tensor = args.tensors[arg];
    if (tensor == nullptr || !HasSize(*tensor)) continue;
    if (arg < num_inputs) {
      const auto first = instruction.inputs.begin();
      const bool again = std::find(first, first + arg, first[arg]) != first + arg;
      const int flags = InputFlags(instruction, static_cast<int>(arg));
      if (again || (flags & kNoNeedBuffer) != 0) continue;
    }
    bytes += static_cast<double>(tensor->size_bytes());
  }
  return static_cast<int64_t>(std::min(bytes, 0x1p62));
}

int64_t FlopsOf(const Instruction& instruction, BoundArgs& args) {
  if (instruction.def->flops == nullptr) return 0;
  for (const Tensor* tensor : args.tensors) {
    if (tensor != nullptr && !HasSize(*tensor)) return 0;
  }
  return instruction.def->flops(OpContext(args, instruction.attrs.get()));
}

}  // namespace

std::vector<InstructionCost> CostsOfLastRun(const InterpreterCore& core) {
  std::vector<InstructionCost> costs(static_cast<size_t>(CountInstructions(core.plans())));
  for (const Plan& plan : core.plans()) {
    const absl::Span<Variable* const> variables = core.variables(plan.block);
    if (variables.empty()) continue;
    for (size_t i = 0; i < plan.instructions.size(); ++i) {
      const Instruction& instruction = plan.instructions[i];
      BoundArgs args = BindArgs(plan, instruction, variables);
      costs[plan.first_number + i] = {.bytes = BytesOf(plan, instruction, args),
                                      .flops = FlopsOf(instruction, args)};
    }
  }
  return costs;
}

}  // namespace interp
