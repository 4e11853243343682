// conditional_block, conditional_block_infer: run their block, or leave its outputs as they are.
// With is_scalar_condition Cond decides, else whether all of Input have elements. Programs of
// Paddle 1.0 to 1.2 call the slots X and Params.
// (Paddle: fluid/operators/controlflow/conditional_block_op.h.)
#include <algorithm>

#include "core/op_def.h"
#include "kernels/control_flow/block_op.h"
#include "kernels/control_flow/gradient_values.h"
#include "kernels/util/all_present.h"

namespace interp {
namespace {

constexpr int kCond = 0;
constexpr int kInput = 1;
constexpr int kX = 2;
constexpr int kParams = 3;
constexpr int kScope = 1;

struct ConditionalAttrs {
  bool is_scalar_condition;
  static ConditionalAttrs Read(AttrReader& attrs) {
    return {attrs.Bool("is_scalar_condition", false)};
  }
};

absl::Status FindBlock(const Program&, const Op&, SubBlock&) { return absl::OkStatus(); }

bool HaveElements(absl::Span<const Tensor* const> inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Tensor* input) { return input == nullptr || input->numel() != 0; });
}

absl::StatusOr<bool> IsTaken(KernelContext& ctx) {
  if (!ctx.attrs<ConditionalAttrs>().is_scalar_condition) {
    return HaveElements(ctx.inputs(kInput)) && HaveElements(ctx.inputs(kParams));
  }
  const int slot = ctx.has_input(kCond) ? kCond : kX;
  INTERP_RETURN_IF_ERROR(CheckPresent(ctx, slot, "Cond"));
  return control_flow::ReadCondition(ctx.input(slot), slot == kCond ? "Cond" : "X");
}

absl::Status ConditionalBlock(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const bool taken, IsTaken(ctx));
  const bool saves = ctx.block().saves() && ctx.has_output(kScope);
  if (saves) {
    ctx.output_variable(kScope).steps.clear();
    const int inputs = ctx.has_input(kInput) ? kInput : kParams;
    control_flow::NoteTypes(ctx.input_variables(inputs), ctx.output_variable(kScope));
  }
  if (!taken) return absl::OkStatus();
  if (!saves) return ctx.block().Run();
  return ctx.block().RunAndSave(ctx.output_variable(kScope).steps.emplace_back());
}

absl::Status MakeGradient(GradientMaker& maker) {
  const bool old_slots = maker.op().FindInput("Params") != nullptr;
  const absl::string_view inputs = old_slots ? "Params" : "Input";
  if (!maker.Wants(inputs)) return absl::OkStatus();
  Op& gradient = maker.Add("conditional_block_grad");
  AddInput(gradient, "Cond", maker.Arguments(old_slots ? "X" : "Cond"));
  AddInput(gradient, "Input", maker.Arguments(inputs));
  AddInput(gradient, "Out", maker.Arguments("Out"));
  AddInput(gradient, "Out@GRAD", maker.OutputGradients("Out"));
  AddInput(gradient, "Scope", maker.Arguments("Scope"));
  AddOutput(gradient, "Input@GRAD", maker.InputGradients(inputs));
  gradient.attrs = maker.op().attrs;
  SetAttr(gradient, "sub_block", BlockIndex{maker.gradient_block()});
  return absl::OkStatus();
}

OpDef ConditionalDef(absl::string_view type, GradientDef gradient) {
  constexpr int kConditions = kOptional | kVariadic | kAnyDType | kHostInput;
  constexpr int kInputs =
      kOptional | kVariadic | kAnyDType | kAnyLayout | kNoNeedBuffer | kMayBeEmpty;
  return OpDef{
      .type = type,
      .inputs = {{"Cond", kConditions},
                 {"Input", kInputs},
                 {"X", kConditions},
                 {"Params", kInputs}},
      .outputs = {{"Out", kOptional | kVariadic | kOfSubBlock},
                  {"Scope", kOptional | kTensorArray}},
      .parse = ParseAttrs<ConditionalAttrs, ConditionalAttrs::Read>,
      .kernel_dtype = control_flow::NoKernelDType,
      .infer = control_flow::InferNothing,
      .kernels = {{DType::kUndefined, ConditionalBlock}},
      .sub_block = FindBlock,
      .gradient = std::move(gradient),
  };
}

INTERP_REGISTER_OP(ConditionalDef("conditional_block", {.make = MakeGradient}));
INTERP_REGISTER_OP(ConditionalDef("conditional_block_infer", {}));

}  // namespace
}  // namespace interp
