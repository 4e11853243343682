// recurrent: runs its block once for each row of `inputs` ([T, ...] each); with `reverse` from the
// last row on. In the block an input is its row, without the first dimension; a state begins as its
// initial value and is then what the step before made of it; rows of `outputs` are collected.
// (Paddle: fluid/operators/recurrent_op.cc.)
#include "core/op_def.h"
#include "kernels/control_flow/block_op.h"
#include "kernels/control_flow/lost_states.h"
#include "kernels/control_flow/step_rows.h"

namespace interp {
namespace {

constexpr int kInputs = 0;
constexpr int kInitialStates = 1;
constexpr int kOutputs = 0;
constexpr int kStepScopes = 1;

struct RecurrentAttrs {
  bool reverse;
  static RecurrentAttrs Read(AttrReader& attrs) { return {attrs.Bool("reverse", false)}; }
};

// Entries are the inputs, then the states as they were; results are the states as they become, then
// the outputs.
absl::Status FindBlock(const Program& program, const Op& op, SubBlock& block) {
  INTERP_ASSIGN_OR_RETURN(const auto states, control_flow::ReadStates(op));
  const auto& [before, after] = states;
  const Slot* inputs = op.FindInput("inputs");
  for (size_t i = 0; inputs != nullptr && i < inputs->args.size(); ++i) {
    block.entries.push_back({program.NameOf(inputs->args[i]), kInputs, static_cast<int>(i)});
  }
  for (size_t i = 0; i < before.size(); ++i) {
    block.entries.push_back({before[i], kInitialStates, static_cast<int>(i)});
  }
  INTERP_ASSIGN_OR_RETURN(block.results, control_flow::FindStates(program, op, before, after));
  if (const Slot* outputs = op.FindOutput("outputs")) {
    for (const VarId id : outputs->args) block.results.push_back(program.NameOf(id));
  }
  return absl::OkStatus();
}

// The number of steps: the first dimension of all inputs.
absl::StatusOr<int64_t> CountSteps(absl::Span<const Tensor* const> inputs) {
  if (inputs.empty()) return InvalidArgument("has no input 'inputs', so no number of steps");
  for (const Tensor* input : inputs) {
    if (input == nullptr || input->shape.rank() == 0 || input->shape[0] != inputs[0]->shape[0]) {
      return InvalidArgument("input 'inputs' has ",
                             input == nullptr ? "@EMPTY@" : DescribeType(*input), " beside ",
                             inputs[0] == nullptr ? "@EMPTY@" : DescribeType(*inputs[0]),
                             ", expected the same first dimension");
    }
  }
  return inputs[0]->shape[0];
}

absl::Status CollectRows(const KernelContext& ctx, int64_t num_steps, int64_t index, bool first,
                         size_t first_result) {
  const absl::Span<Tensor* const> outputs = ctx.outputs(kOutputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    const Tensor& row = ctx.block().result(first_result + i).tensor;
    Tensor& out = *outputs[i];
    if (first) INTERP_RETURN_IF_ERROR(control_flow::AllocateRows(ctx, num_steps, row, out));
    INTERP_RETURN_IF_ERROR(
        Annotate(control_flow::PutRow(row, index, num_steps, out), absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

absl::Status Recurrent(KernelContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kInputs);
  const absl::Span<const Tensor* const> initial = ctx.inputs(kInitialStates);
  INTERP_ASSIGN_OR_RETURN(const int64_t num_steps, CountSteps(inputs));
  if (num_steps == 0) {
    return InvalidArgument("input 'inputs' has no step, so the outputs have no shape");
  }
  BlockRunner& block = ctx.block();
  const bool saves = block.saves() && ctx.has_output(kStepScopes);
  if (saves) ctx.output_variable(kStepScopes).steps.clear();
  for (int64_t step = 0; step < num_steps; ++step) {
    const int64_t row = ctx.attrs<RecurrentAttrs>().reverse ? num_steps - 1 - step : step;
    for (size_t i = 0; i < inputs.size(); ++i)
      control_flow::TakeRow(*inputs[i], row, block.entry(i).tensor);
    for (size_t i = 0; i < initial.size(); ++i) {
      if (step == 0 && initial[i] == nullptr) {
        return InvalidArgument("argument ", i, " of input 'initial_states' is @EMPTY@");
      }
      block.entry(inputs.size() + i).tensor = step == 0 ? *initial[i] : block.result(i).tensor;
    }
    INTERP_RETURN_IF_ERROR(
        saves ? block.RunAndSave(ctx.output_variable(kStepScopes).steps.emplace_back())
              : block.Run());
    INTERP_RETURN_IF_ERROR(CollectRows(ctx, num_steps, row, step == 0, initial.size()));
  }
  return absl::OkStatus();
}

// The gradient block hands on the gradients of the states by their own names.
absl::Status CheckNothingLost(const GradientMaker& maker) {
  AttrReader attrs(maker.op());
  const std::vector<std::string> states = attrs.Strings("states");
  INTERP_ASSIGN_OR_RETURN(
      const std::vector<std::string> found,
      control_flow::FindStates(maker.program(), maker.op(), attrs.Strings("ex_states"), states));
  if (found == states) return attrs.status();
  return InvalidArgument(
      "has states that no op of its block makes: pruning has removed them, and no gradient can "
      "pass; train the program as it was before");
}

// Slots as Paddle's maker has them: all of the forward op's, step_scopes also as a gradient.
absl::Status MakeGradient(GradientMaker& maker) {
  constexpr absl::string_view kInputSlots[] = {"inputs", "initial_states", "parameters"};
  bool wanted = false;
  for (const absl::string_view slot : kInputSlots) wanted |= maker.Wants(slot);
  if (!wanted) return absl::OkStatus();
  if (!AttrReader(maker.op()).Bool("is_train", true)) {
    return InvalidArgument("attribute 'is_train' is not set: no step is kept for the gradient");
  }
  INTERP_RETURN_IF_ERROR(CheckNothingLost(maker));
  Op& gradient = maker.Add("recurrent_grad");
  for (const absl::string_view slot : kInputSlots) {
    AddInput(gradient, slot, maker.Arguments(slot));
    AddOutput(gradient, GradientName(slot), maker.InputGradients(slot));
  }
  AddInput(gradient, "outputs", maker.Arguments("outputs"));
  AddInput(gradient, "outputs@GRAD", maker.OutputGradients("outputs"));
  AddInput(gradient, "step_scopes", maker.Arguments("step_scopes"));
  AddInput(gradient, "step_scopes@GRAD", maker.Arguments("step_scopes"));
  gradient.attrs = maker.op().attrs;
  SetAttr(gradient, "sub_block", BlockIndex{maker.gradient_block()});
  return absl::OkStatus();
}

// An output has the dtype of its declaration, which the plan has for it already.
void InferDTypes(DTypeContext&) {}

INTERP_REGISTER_OP(OpDef{
    .type = "recurrent",
    .inputs = {{"inputs", kOptional | kVariadic | kAnyDType},
               {"initial_states", kOptional | kVariadic | kAnyDType},
               {"parameters", kOptional | kVariadic | kAnyDType | kAnyLayout | kOfSubBlock}},
    .outputs = {{"outputs", kVariadic}, {"step_scopes", kOptional | kTensorArray}},
    .parse = ParseAttrs<RecurrentAttrs, RecurrentAttrs::Read>,
    .kernel_dtype = control_flow::NoKernelDType,
    .infer_dtype = InferDTypes,
    .kernels = {{DType::kUndefined, Recurrent}},
    .dynamic_outputs = true,
    .sub_block = FindBlock,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
