// Rows of optimizers. Gradients that are selected rows stay on the host.
#include "kernels/cuda/lamb.h"
#include "kernels/cuda/lars.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/row.h"
#include "kernels/optimizer/adam.h"
#include "kernels/optimizer/momentum.h"
#include "kernels/optimizer/update_attrs.h"

namespace interp::cuda {
namespace {

using optimizer::AdamAttrs;
using optimizer::InputOf;

// How an op has its states, scalars and what comes after MasterParam.
template <int kStates, int kScalars>
using FormOf = optimizer::Form<static_cast<size_t>(kStates), static_cast<size_t>(kScalars)>;

FloatsUpdate UpdateOf(const KernelContext& ctx, int output, size_t i) {
  const auto in = ctx.inputs(InputOf(output));
  const auto out = ctx.outputs(output);
  if (in.empty()) return {};
  return {.in = in[i]->raw_data(),
          .out = out.empty() ? nullptr : out[i]->mutable_raw_data(),
          .dtype = in[i]->dtype};
}

// Parameter `i` of an op of a form.
template <int kStates, int kScalars>
UpdateTask TaskOf(const KernelContext& ctx, size_t i) {
  using Form = FormOf<kStates, kScalars>;
  const auto rates = ctx.inputs(optimizer::kLearningRate);
  UpdateTask task;
  task.size = ctx.inputs(optimizer::kParam)[i]->numel();
  task.param = UpdateOf(ctx, optimizer::kParamOut, i);
  task.master = UpdateOf(ctx, Form::kMasterOut, i);
  for (int k = 0; k < kStates; ++k) {
    task.states[k] = UpdateOf(ctx, optimizer::kFirstStateOut + k, i);
  }
  for (int k = 0; k < kScalars; ++k) {
    task.beta_pows[k] = UpdateOf(ctx, Form::kFirstScalarOut + k, i);
  }
  task.grad = FloatsOf(ctx.inputs(optimizer::kGrad)[i]);
  if (!rates.empty()) task.rate = FloatsOf(rates[rates.size() == 1 ? 0 : i]);
  return task;
}

absl::Status Sgd(KernelContext& ctx) {
  const UpdateTask task = TaskOf<0, 0>(ctx, 0);
  return UpdateParameters(UpdateRule::kSgd, {}, {task}, StreamOf(ctx));
}

absl::Status RunMomentum(const KernelContext& ctx, const optimizer::MomentumAttrs& attrs,
                         absl::Span<const UpdateTask> tasks) {
  const UpdateNumbers numbers = {.beta1 = {.value = attrs.mu}};
  return UpdateParameters(attrs.nesterov ? UpdateRule::kNesterov : UpdateRule::kMomentum, numbers,
                          tasks, StreamOf(ctx));
}

absl::Status Momentum(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<optimizer::OneMomentumAttrs>();
  UpdateTask task = TaskOf<1, 0>(ctx, 0);
  task.decay = attrs.decay;
  return RunMomentum(ctx, attrs.momentum, {task});
}

absl::Status MergedMomentum(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<optimizer::MergedMomentumAttrs>();
  std::vector<UpdateTask> tasks;
  for (size_t i = 0; i < ctx.inputs(optimizer::kParam).size(); ++i) {
    tasks.push_back(TaskOf<1, 0>(ctx, i));
    if (!attrs.decay.empty()) tasks.back().decay = attrs.decay[i];
  }
  return RunMomentum(ctx, attrs.momentum, tasks);
}

UpdateNumbers NumbersOf(const AdamAttrs& attrs) {
  return {.beta1 = {.value = attrs.beta1},
          .beta2 = {.value = attrs.beta2},
          .epsilon = {.value = attrs.epsilon},
          .decay = attrs.decay,
          .keep_pows = attrs.keep_pows};
}

// Tensors win over attributes.
absl::Status Adam(KernelContext& ctx) {
  constexpr int kBeta1Tensor = FormOf<2, 2>::kFirstOther;
  constexpr int kSkipUpdate = kBeta1Tensor + 3;
  UpdateNumbers numbers = NumbersOf(ctx.attrs<AdamAttrs>());
  numbers.beta1.data = FloatsOf(ctx.optional_input(kBeta1Tensor));
  numbers.beta2.data = FloatsOf(ctx.optional_input(kBeta1Tensor + 1));
  numbers.epsilon.data = FloatsOf(ctx.optional_input(kBeta1Tensor + 2));
  UpdateTask task = TaskOf<2, 2>(ctx, 0);
  if (ctx.has_input(kSkipUpdate)) task.skip = ctx.input(kSkipUpdate).data<bool>();
  return UpdateParameters(UpdateRule::kAdam, numbers, {task}, StreamOf(ctx));
}

absl::Status MergedAdam(KernelContext& ctx) {
  std::vector<UpdateTask> tasks;
  for (size_t i = 0; i < ctx.inputs(optimizer::kParam).size(); ++i) {
    tasks.push_back(TaskOf<2, 2>(ctx, i));
  }
  return UpdateParameters(UpdateRule::kAdam, NumbersOf(ctx.attrs<AdamAttrs>()), tasks,
                          StreamOf(ctx));
}

absl::Status Adagrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<optimizer::AdagradAttrs>();
  const UpdateNumbers numbers = {.beta1 = {.value = attrs.keep},
                                 .beta2 = {.value = attrs.add},
                                 .epsilon = {.value = attrs.epsilon}};
  const UpdateTask task = TaskOf<1, 0>(ctx, 0);
  return UpdateParameters(UpdateRule::kAdagrad, numbers, {task}, StreamOf(ctx));
}

absl::Status Adadelta(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<optimizer::AdadeltaAttrs>();
  const UpdateNumbers numbers = {.beta1 = {.value = attrs.rho},
                                 .epsilon = {.value = attrs.epsilon}};
  const UpdateTask task = TaskOf<2, 0>(ctx, 0);
  return UpdateParameters(UpdateRule::kAdadelta, numbers, {task}, StreamOf(ctx));
}

absl::Status Adamax(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<optimizer::AdamaxAttrs>();
  const UpdateNumbers numbers = {.beta1 = {.value = attrs.beta1},
                                 .beta2 = {.value = attrs.beta2},
                                 .epsilon = {.value = attrs.epsilon}};
  UpdateTask task = TaskOf<2, 0>(ctx, 0);
  const Tensor& pow = ctx.input(FormOf<2, 0>::kFirstOther);
  task.beta_pows[0] = {.in = pow.raw_data(), .dtype = pow.dtype};
  return UpdateParameters(UpdateRule::kAdamax, numbers, {task}, StreamOf(ctx));
}

absl::Status Rmsprop(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<optimizer::RmspropAttrs>();
  const UpdateNumbers numbers = {.beta1 = {.value = attrs.momentum},
                                 .beta2 = {.value = attrs.decay},
                                 .epsilon = {.value = attrs.epsilon}};
  const UpdateTask task = TaskOf<3, 0>(ctx, 0);
  const FloatsUpdate& mean = task.states[2];
  if (!attrs.centered && mean.out != nullptr && mean.in != mean.out) {
    const size_t bytes = static_cast<size_t>(task.size) * SizeOf(mean.dtype);
    INTERP_RETURN_IF_ERROR(
        ToStatus(cudaMemcpyAsync(mean.out, mean.in, bytes, cudaMemcpyDeviceToDevice, StreamOf(ctx)),
                 "cannot copy 'MeanGrad'"));
  }
  return UpdateParameters(attrs.centered ? UpdateRule::kCenteredRmsprop : UpdateRule::kRmsprop,
                          numbers, {task}, StreamOf(ctx));
}

absl::Status Lars(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<optimizer::LarsAttrs>();
  const LarsNumbers numbers{.mu = attrs.mu,
                            .coefficient = attrs.coefficient,
                            .epsilon = attrs.epsilon,
                            .rescale = attrs.rescale};
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(LarsWorkspaceBytes()));
  for (size_t i = 0; i < ctx.inputs(optimizer::kParam).size(); ++i) {
    UpdateTask task = TaskOf<1, 0>(ctx, i);
    task.decay = attrs.decay[attrs.decay.size() == 1 ? 0 : i];
    INTERP_RETURN_IF_ERROR(UpdateByLars(numbers, task, work.data(), StreamOf(ctx)));
  }
  return absl::OkStatus();
}

absl::Status Lamb(KernelContext& ctx) {
  constexpr int kSkipUpdate = FormOf<2, 2>::kFirstOther;
  const auto& attrs = ctx.attrs<optimizer::LambAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(LambWorkspaceBytes()));
  UpdateTask task = TaskOf<2, 2>(ctx, 0);
  if (ctx.has_input(kSkipUpdate)) task.skip = ctx.input(kSkipUpdate).data<bool>();
  return UpdateByLamb({.beta1 = attrs.beta1,
                       .beta2 = attrs.beta2,
                       .epsilon = attrs.epsilon,
                       .decay = attrs.decay,
                       .always_adapt = attrs.always_adapt},
                      task, work.data(), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("sgd", RowsFor(kFloats, Sgd));
INTERP_REGISTER_KERNELS("momentum", RowsFor(kFloats, Momentum));
INTERP_REGISTER_KERNELS("merged_momentum", RowsFor(kFloats, MergedMomentum));
INTERP_REGISTER_KERNELS("adam", RowsFor(kFloats, Adam));
INTERP_REGISTER_KERNELS("adamw", RowsFor(kFloats, Adam));
INTERP_REGISTER_KERNELS("merged_adam", RowsFor(kFloats, MergedAdam));
INTERP_REGISTER_KERNELS("lamb", RowsFor(kFloats, Lamb));
INTERP_REGISTER_KERNELS("lars_momentum", RowsFor(kFloats, Lars));
INTERP_REGISTER_KERNELS("adagrad", RowsFor(kFloats, Adagrad));
INTERP_REGISTER_KERNELS("decayed_adagrad", RowsFor(kFloats, Adagrad));
INTERP_REGISTER_KERNELS("adadelta", RowsFor(kFloats, Adadelta));
INTERP_REGISTER_KERNELS("adamax", RowsFor(kFloats, Adamax));
INTERP_REGISTER_KERNELS("rmsprop", RowsFor(kFloats, Rmsprop));

}  // namespace
}  // namespace interp::cuda
