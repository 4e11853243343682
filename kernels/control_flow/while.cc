// while: runs its block as long as Condition holds, which the block computes anew.
// (Paddle: fluid/operators/controlflow/while_op.cc.)
#include "core/op_def.h"
#include "kernels/control_flow/block_op.h"

namespace interp {
namespace {

constexpr int kCondition = 1;
constexpr int kStepScopes = 1;

absl::Status FindBlock(const Program&, const Op&, SubBlock& block) {
  block.saves_captures = true;
  return absl::OkStatus();
}

absl::Status While(KernelContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  BlockRunner& block = ctx.block();
  std::vector<StepRecord>* const steps = block.saves() && ctx.has_output(kStepScopes)
                                             ? &ctx.output_variable(kStepScopes).steps
                                             : nullptr;
  if (steps != nullptr) steps->clear();
  while (true) {
    INTERP_ASSIGN_OR_RETURN(const bool goes_on,
                            control_flow::ReadCondition(condition, "Condition"));
    if (!goes_on) return absl::OkStatus();
    INTERP_RETURN_IF_ERROR(steps == nullptr ? block.Run()
                                            : block.RunAndSave(steps->emplace_back()));
  }
}

INTERP_REGISTER_OP(OpDef{
    .type = "while",
    .inputs = {{"X", kOptional | kVariadic | kAnyDType | kAnyLayout | kOfSubBlock},
               {"Condition", kAnyDType | kHostInput}},
    .outputs = {{"Out", kOptional | kVariadic | kOfSubBlock},
                {"StepScopes", kOptional | kTensorArray}},
    .kernel_dtype = control_flow::NoKernelDType,
    .infer = control_flow::InferNothing,
    .kernels = {{DType::kUndefined, While}},
    .sub_block = FindBlock,
});

}  // namespace
}  // namespace interp
