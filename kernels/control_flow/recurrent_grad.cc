// recurrent_grad: runs the gradient of the block on what each step left, the last step first. In
// the block the gradient of an output is its row, and that of a state what the step after it made
// of the state's previous value. Rows of the gradients of inputs are collected, gradients of
// parameters summed, and those of the first states are initial_states@GRAD.
// (Paddle: RecurrentGradOp in fluid/operators/recurrent_op.cc.)
#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "core/op_def.h"
#include "kernels/control_flow/block_op.h"
#include "kernels/control_flow/gradient_values.h"
#include "kernels/control_flow/lost_states.h"
#include "kernels/control_flow/step_rows.h"
#include "kernels/util/fill_zero.h"

namespace interp {
namespace {

using control_flow::ArgumentOrNull;
using control_flow::FillZerosLike;
using control_flow::GradientSum;
using control_flow::HasValue;
using control_flow::ShareValue;

constexpr int kInputs = 0;
constexpr int kInitialStates = 1;
constexpr int kParameters = 2;
constexpr int kStepScopes = 3;
constexpr int kOutputsGrad = 4;
constexpr int kInputsGrad = 0;
constexpr int kInitialStatesGrad = 1;
constexpr int kParametersGrad = 2;

struct RecurrentGradAttrs {
  bool reverse;
  static RecurrentGradAttrs Read(AttrReader& attrs) { return {attrs.Bool("reverse", false)}; }
};

bool IsHole(const Program& program, VarId id) { return program.NameOf(id) == kEmptyVarName; }

// Adds the gradients of the arguments of `slot` that are wanted to the results.
absl::Status AddWanted(const Program& program, const Op& op, absl::string_view slot,
                       SubBlock& block) {
  const std::string gradient_slot = GradientName(slot);
  const Slot* gradients = op.FindOutput(gradient_slot);
  if (gradients == nullptr) return absl::OkStatus();
  const Slot* values = op.FindInput(slot);
  if (values == nullptr || values->args.size() != gradients->args.size()) {
    return InvalidArgument("'", gradient_slot, "' has ", gradients->args.size(), " arguments, '",
                           slot, "' has ", values == nullptr ? 0 : values->args.size());
  }
  for (size_t i = 0; i < values->args.size(); ++i) {
    if (IsHole(program, gradients->args[i])) continue;
    block.results.push_back(GradientName(program.NameOf(values->args[i])));
  }
  return absl::OkStatus();
}

// Entries are the rows of outputs@GRAD that there are, then the gradients of all states; results
// those of the states before the step, then of the inputs and the parameters that are wanted.
absl::Status FindBlock(const Program& program, const Op& op, SubBlock& block) {
  INTERP_ASSIGN_OR_RETURN(const auto states, control_flow::ReadStates(op));
  const auto& [before, after] = states;
  const size_t num_states = before.size();
  const Slot* initial_grad = op.FindOutput("initial_states@GRAD");
  if (initial_grad != nullptr && initial_grad->args.size() != num_states) {
    return InvalidArgument("'initial_states@GRAD' has ", initial_grad->args.size(),
                           " arguments, 'initial_states' has ", num_states);
  }
  const Slot* outputs = op.FindInput("outputs");
  const Slot* gradients = op.FindInput("outputs@GRAD");
  const size_t num_outputs = outputs == nullptr ? 0 : outputs->args.size();
  if (gradients != nullptr && gradients->args.size() != num_outputs) {
    return InvalidArgument("'outputs@GRAD' has ", gradients->args.size(),
                           " arguments, 'outputs' has ", num_outputs);
  }
  for (size_t i = 0; gradients != nullptr && i < num_outputs; ++i) {
    if (IsHole(program, gradients->args[i])) continue;
    block.entries.push_back(
        {GradientName(program.NameOf(outputs->args[i])), kOutputsGrad, static_cast<int>(i)});
  }
  for (size_t i = 0; i < num_states; ++i) {
    block.entries.push_back({GradientName(after[i]), kInitialStates, static_cast<int>(i)});
  }
  for (const std::string& state : before) block.results.push_back(GradientName(state));
  INTERP_RETURN_IF_ERROR(AddWanted(program, op, "inputs", block));
  return AddWanted(program, op, "parameters", block);
}

// The gradient steps of one run.
class Steps {
 public:
  explicit Steps(KernelContext& ctx)
      : ctx_(ctx),
        block_(ctx.block()),
        records_(ctx.input_variable(kStepScopes).steps),
        num_steps_(std::ssize(records_)),
        num_states_(ctx.inputs(kInitialStates).size()),
        sums_(ctx.outputs(kParametersGrad).size()) {}

  absl::Status Run() {
    for (int64_t step = num_steps_ - 1; step >= 0; --step) {
      const int64_t row = ctx_.attrs<RecurrentGradAttrs>().reverse ? num_steps_ - 1 - step : step;
      INTERP_RETURN_IF_ERROR(Give(row, /*last=*/step == num_steps_ - 1));
      INTERP_RETURN_IF_ERROR(block_.RunOn(records_.back()));
      records_.pop_back();
      INTERP_RETURN_IF_ERROR(Take(row));
    }
    return Finish();
  }

 private:
  // Behind the last step nothing has made a gradient of its states, and nothing anywhere one of an
  // output that has no use. Where an output is a state, the
  // state's gradient takes the place of the output's, as in Paddle.
  absl::Status Give(int64_t row, bool last) {
    const absl::Span<const Tensor* const> given = ctx_.inputs(kOutputsGrad);
    const size_t num_rows = given.size() - static_cast<size_t>(absl::c_count(given, nullptr));
    if (last) {
      for (size_t i = 0; i < num_states_; ++i) block_.entry(num_rows + i).DropValue();
    }
    size_t entry = 0;
    for (const Tensor* gradient : given) {
      if (gradient == nullptr) continue;
      if (!HasValue(*gradient)) {
        block_.entry(entry++).DropValue();
        continue;
      }
      if (gradient->shape.rank() == 0 || gradient->shape[0] != num_steps_) {
        return InvalidArgument("'outputs@GRAD' has ", DescribeType(*gradient), ", expected ",
                               num_steps_, " rows, one for each step");
      }
      control_flow::TakeRow(*gradient, row, block_.entry(entry++).tensor);
    }
    for (size_t i = 0; !last && i < num_states_; ++i) {
      block_.entry(num_rows + i).tensor = block_.result(i).tensor;
      block_.result(i).DropValue();
    }
    return absl::OkStatus();
  }

  absl::Status Take(int64_t row) {
    size_t result = num_states_;
    for (Tensor* gradient : ctx_.outputs(kInputsGrad)) {
      if (gradient == nullptr) continue;
      INTERP_RETURN_IF_ERROR(TakeRow(block_.result(result++), row, *gradient));
    }
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (ctx_.outputs(kParametersGrad)[i] == nullptr) continue;
      Variable& made = block_.result(result++);
      if (!HasValue(made)) continue;
      INTERP_RETURN_IF_ERROR(sums_[i].Add(ctx_, made));
      made.DropValue();
    }
    return absl::OkStatus();
  }

  // A step that makes no gradient leaves its row 0.
  absl::Status TakeRow(Variable& made, int64_t row, Tensor& gradient) {
    if (!HasValue(made)) return absl::OkStatus();
    if (rows_taken_.insert(&gradient).second) {
      INTERP_RETURN_IF_ERROR(control_flow::AllocateRows(ctx_, num_steps_, made.tensor, gradient));
      FillZero(ctx_.num_threads(), gradient);
    }
    INTERP_RETURN_IF_ERROR(Annotate(control_flow::PutRow(made.tensor, row, num_steps_, gradient),
                                    "gradient of an input"));
    made.DropValue();
    return absl::OkStatus();
  }

  // What no step has made is 0.
  absl::Status Finish() {
    const absl::Span<Variable* const> states = ctx_.output_variables(kInitialStatesGrad);
    for (size_t i = 0; i < states.size(); ++i) {
      INTERP_RETURN_IF_ERROR(Put(block_.result(i), kInitialStates, i, states[i]));
    }
    const absl::Span<Variable* const> inputs = ctx_.output_variables(kInputsGrad);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr || rows_taken_.contains(&inputs[i]->tensor)) continue;
      INTERP_RETURN_IF_ERROR(Put(Variable(), kInputs, i, inputs[i]));
    }
    for (size_t i = 0; i < sums_.size(); ++i) {
      INTERP_RETURN_IF_ERROR(
          Put(sums_[i].value(), kParameters, i, ctx_.output_variables(kParametersGrad)[i]));
    }
    return absl::OkStatus();
  }

  absl::Status Put(const Variable& made, int like_slot, size_t like, Variable* out) {
    if (out == nullptr) return absl::OkStatus();
    if (HasValue(made)) {
      ShareValue(made, *out);
      return absl::OkStatus();
    }
    const Variable* const value = ArgumentOrNull(ctx_.input_variables(like_slot), like);
    return value == nullptr ? absl::OkStatus() : FillZerosLike(ctx_, *value, *out);
  }

  KernelContext& ctx_;
  BlockRunner& block_;
  std::vector<StepRecord>& records_;
  const int64_t num_steps_;
  const size_t num_states_;
  std::vector<GradientSum> sums_;  // by argument of parameters@GRAD
  absl::flat_hash_set<const Tensor*> rows_taken_;
};

absl::Status RecurrentGrad(KernelContext& ctx) { return Steps(ctx).Run(); }

constexpr int kShapes =
    kOptional | kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout | kMayBeEmpty;
constexpr int kGradients = kOptional | kVariadic | kMayBeRows;

INTERP_REGISTER_OP(OpDef{
    .type = "recurrent_grad",
    .inputs = {{"inputs", kShapes},
               {"initial_states", kShapes},
               {"parameters", kShapes},
               {"step_scopes", kTensorArray},
               {"outputs@GRAD", kOptional | kVariadic | kAnyDType | kMayBeEmpty},
               {"outputs", kShapes},
               {"step_scopes@GRAD", kOptional | kTensorArray}},
    .outputs = {{"inputs@GRAD", kOptional | kVariadic},
                {"initial_states@GRAD", kOptional | kVariadic},
                {"parameters@GRAD", kGradients}},
    .parse = ParseAttrs<RecurrentGradAttrs, RecurrentGradAttrs::Read>,
    .kernel_dtype = control_flow::NoKernelDType,
    .kernels = {{DType::kUndefined, RecurrentGrad}},
    .dynamic_outputs = true,
    .sub_block = FindBlock,
});

}  // namespace
}  // namespace interp
