// conditional_block_grad: runs the gradient of the block on what it left. Where the block did not
// run, or its gradient makes none of an input, the gradient of that input is 0.
// (Paddle: ConditionalBlockGradOp in fluid/operators/controlflow/conditional_block_op.cc.)
#include "core/op_def.h"
#include "kernels/control_flow/block_op.h"
#include "kernels/control_flow/gradient_values.h"

namespace interp {
namespace {

using control_flow::ArgumentOrNull;
using control_flow::FillZerosLike;
using control_flow::HasValue;
using control_flow::ShareValue;

constexpr int kInput = 0;
constexpr int kScope = 1;
constexpr int kOutGrad = 2;
constexpr int kInputGrad = 0;

// Entries are the gradients of Out, results those of Input; both without holes.
absl::Status FindBlock(const Program& program, const Op& op, SubBlock& block) {
  const Slot* out = op.FindInput("Out");
  const Slot* out_grad = op.FindInput("Out@GRAD");
  const size_t num_out = out == nullptr ? 0 : out->args.size();
  if (out_grad != nullptr && out_grad->args.size() != num_out) {
    return InvalidArgument("'Out@GRAD' has ", out_grad->args.size(), " arguments, 'Out' has ",
                           num_out);
  }
  for (size_t i = 0; out_grad != nullptr && i < num_out; ++i) {
    if (program.NameOf(out_grad->args[i]) == kEmptyVarName) continue;
    block.entries.push_back(
        {GradientName(program.NameOf(out->args[i])), kOutGrad, static_cast<int>(i)});
  }
  const Slot* input = op.FindInput("Input");
  const Slot* input_grad = op.FindOutput("Input@GRAD");
  const size_t num_inputs = input == nullptr ? 0 : input->args.size();
  if (input_grad != nullptr && input_grad->args.size() != num_inputs) {
    return InvalidArgument("'Input@GRAD' has ", input_grad->args.size(), " arguments, 'Input' has ",
                           num_inputs);
  }
  for (size_t i = 0; input_grad != nullptr && i < num_inputs; ++i) {
    if (program.NameOf(input_grad->args[i]) == kEmptyVarName) continue;
    block.results.push_back(GradientName(program.NameOf(input->args[i])));
  }
  return absl::OkStatus();
}

absl::Status RunGradient(KernelContext& ctx, StepRecord& record) {
  BlockRunner& block = ctx.block();
  size_t entry = 0;
  for (const Variable* gradient : ctx.input_variables(kOutGrad)) {
    if (gradient != nullptr) ShareValue(*gradient, block.entry(entry++));
  }
  return block.RunOn(record);
}

absl::Status ConditionalBlockGrad(KernelContext& ctx) {
  std::vector<StepRecord>& steps = ctx.input_variable(kScope).steps;
  const bool taken = !steps.empty();
  if (taken) INTERP_RETURN_IF_ERROR(RunGradient(ctx, steps.back()));
  steps.clear();
  const absl::Span<Variable* const> gradients = ctx.output_variables(kInputGrad);
  size_t result = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    const Variable& made = ctx.block().result(result++);
    const Variable* const input = ArgumentOrNull(ctx.input_variables(kInput), i);
    if (taken && HasValue(made)) {
      ShareValue(made, *gradients[i]);
    } else if (input != nullptr) {
      INTERP_RETURN_IF_ERROR(FillZerosLike(ctx, *input, *gradients[i]));
    }
  }
  return absl::OkStatus();
}

constexpr int kShapes =
    kOptional | kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout | kMayBeEmpty | kMayBeArray;
constexpr int kGradients =
    kOptional | kVariadic | kAnyDType | kMayBeEmpty | kMayBeArray | kMayBeRows;

INTERP_REGISTER_OP(OpDef{
    .type = "conditional_block_grad",
    .inputs = {{"Input", kShapes},
               {"Scope", kTensorArray},
               {"Out@GRAD", kGradients},
               {"Cond", kShapes},
               {"Out", kShapes}},
    .outputs = {{"Input@GRAD", kOptional | kVariadic | kMayBeArray | kMayBeRows},
                {"Cond@GRAD", kOptional | kVariadic | kOfSubBlock}},
    .kernel_dtype = control_flow::NoKernelDType,
    .kernels = {{DType::kUndefined, ConditionalBlockGrad}},
    .dynamic_outputs = true,
    .sub_block = FindBlock,
});

}  // namespace
}  // namespace interp
