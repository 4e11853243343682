// pow2_decay_with_linear_warmup: a learning rate for the step after Step. It grows linearly to
// base_lr in warmup_steps, then falls with the square of the steps that are left to end_lr, which
// it has from total_steps on.
#include "core/op_def.h"

namespace interp::optimizer {
namespace {

constexpr int kLearningRate = 0;
constexpr int kStep = 1;
constexpr int kLearningRateOut = 0;
constexpr int kStepOut = 1;

struct Attrs {
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;
  float base_lr = 0;
  float end_lr = 0;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Long("warmup_steps", 0), reader.Long("total_steps", 0),
                       reader.Float("base_lr", 0), reader.Float("end_lr", 0)};
  if (attrs.warmup_steps < 0 || attrs.warmup_steps > attrs.total_steps) {
    reader.Fail(absl::StrCat("attribute 'warmup_steps' is ", attrs.warmup_steps,
                             ", expected 0 to 'total_steps', ", attrs.total_steps));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Tensor& rate = ctx.input(kLearningRate);
  const Tensor& step = ctx.input(kStep);
  if (rate.numel() != 1) {
    return InvalidArgument("input 'LearningRate' has shape ", ToString(rate.shape),
                           ", expected one element");
  }
  if (step.dtype != DType::kInt64 || step.numel() != 1) {
    return InvalidArgument("input 'Step' is ", DescribeType(step), ", expected one int64");
  }
  ctx.ShareShape(kLearningRate, kLearningRateOut);
  ctx.ShareShape(kStep, kStepOut);
  return absl::OkStatus();
}

double RateOf(const Attrs& attrs, int64_t step) {
  const double base = static_cast<double>(attrs.base_lr);
  const double end = static_cast<double>(attrs.end_lr);
  const auto warmup = static_cast<double>(attrs.warmup_steps);
  const auto at = static_cast<double>(step);
  if (step <= attrs.warmup_steps) return warmup == 0 ? base : base * at / warmup;
  if (step >= attrs.total_steps) return end;
  const double left = 1 - (at - warmup) / (static_cast<double>(attrs.total_steps) - warmup);
  return (base - end) * left * left + end;
}

template <typename T>
absl::Status Decay(KernelContext& ctx) {
  const int64_t step = *ctx.input(kStep).data<int64_t>() + 1;
  *ctx.output(kLearningRateOut).mutable_data<T>() =
      static_cast<T>(RateOf(ctx.attrs<Attrs>(), step));
  *ctx.output(kStepOut).mutable_data<int64_t>() = step;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "pow2_decay_with_linear_warmup",
    .inputs = {{"LearningRate", kNoNeedBuffer}, {"Step", kAnyDType}},
    .outputs = {{"LearningRateOut"}, {"StepOut"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kStepOut, DType::kInt64); },
    .infer = Infer,
    .kernels = {{DType::kFloat32, Decay<float>}, {DType::kFloat64, Decay<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::optimizer
