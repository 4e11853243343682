// update_loss_scaling: the scale grows after a number of steps without an infinity or a NaN in the
// gradients X and shrinks after a number of steps with one, in which X becomes zero.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/op_def.h"
#include "kernels/optimizer/chunk.h"
#include "kernels/optimizer/scaled_gradients.h"
#include "kernels/optimizer/update_attrs.h"
#include "kernels/util/copy.h"
#include "kernels/util/parallel_for.h"

namespace interp::optimizer {
namespace {

constexpr int kX = 0;
constexpr int kFoundInfinite = 1;
constexpr int kPrevLossScaling = 2;
constexpr int kInGoodSteps = 3;
constexpr int kInBadSteps = 4;
constexpr int kStopUpdate = 5;
constexpr int kOut = 0;
constexpr int kLossScaling = 1;
constexpr int kOutGoodSteps = 2;
constexpr int kOutBadSteps = 3;

LossScalingAttrs ReadAttrs(AttrReader& reader) {
  return {.grow_after = reader.Int("incr_every_n_steps", 0),
          .shrink_after = reader.Int("decr_every_n_nan_or_inf", 0),
          .grow = reader.Float("incr_ratio", 0),
          .shrink = reader.Float("decr_ratio", 0),
          .stop = reader.Bool("stop_update", false)};
}

absl::Status CheckOne(const Tensor& tensor, bool right_dtype, absl::string_view name,
                      absl::string_view expected) {
  if (right_dtype && tensor.numel() == 1) return absl::OkStatus();
  return InvalidArgument("'", name, "' is ", DescribeType(tensor), ", expected one ", expected);
}

absl::Status CheckScalars(const InferContext& ctx) {
  const Tensor& found = ctx.input(kFoundInfinite);
  const Tensor& scale = ctx.input(kPrevLossScaling);
  const Tensor& good = ctx.input(kInGoodSteps);
  const Tensor& bad = ctx.input(kInBadSteps);
  INTERP_RETURN_IF_ERROR(CheckOne(found, found.dtype == DType::kBool, "FoundInfinite", "bool"));
  INTERP_RETURN_IF_ERROR(CheckOne(scale, IsFloating(scale.dtype), "PrevLossScaling", "float"));
  INTERP_RETURN_IF_ERROR(CheckOne(good, good.dtype == DType::kInt32, "InGoodSteps", "int32"));
  INTERP_RETURN_IF_ERROR(CheckOne(bad, bad.dtype == DType::kInt32, "InBadSteps", "int32"));
  if (!ctx.has_input(kStopUpdate)) return absl::OkStatus();
  const Tensor& stop = ctx.input(kStopUpdate);
  return CheckOne(stop, stop.dtype == DType::kBool, "StopUpdate", "bool");
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckScalars(ctx));
  INTERP_RETURN_IF_ERROR(InferScaledGradients(ctx, kX, kOut));
  ctx.ShareShape(kPrevLossScaling, kLossScaling);
  ctx.ShareShape(kInGoodSteps, kOutGoodSteps);
  ctx.ShareShape(kInBadSteps, kOutBadSteps);
  return absl::OkStatus();
}

struct State {
  float scale = 0;
  int32_t good = 0;
  int32_t bad = 0;
};

State Next(const LossScalingAttrs& attrs, bool found, State state) {
  if (found) {
    state.good = 0;
    if (++state.bad != attrs.shrink_after) return state;
    state.bad = 0;
    state.scale = std::max(1.0f, state.scale * attrs.shrink);
    return state;
  }
  state.bad = 0;
  if (++state.good != attrs.grow_after) return state;
  state.good = 0;
  if (std::isfinite(state.scale * attrs.grow)) state.scale *= attrs.grow;
  return state;
}

void PassOn(const Tensor& x, bool zero, int num_threads, Tensor& out) {
  if (!zero) return CopyUnlessShared(x, out);
  char* const bytes = static_cast<char*>(out.mutable_raw_data());
  ParallelFor(num_threads, static_cast<int64_t>(out.size_bytes()), 4 * kElementwiseGrain,
              [bytes](int64_t begin, int64_t end) { std::memset(bytes + begin, 0, end - begin); });
}

absl::Status UpdateLossScaling(KernelContext& ctx) {
  const LossScalingAttrs& attrs = ctx.attrs<LossScalingAttrs>();
  const bool found = *ctx.input(kFoundInfinite).data<bool>();
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    PassOn(*ctx.inputs(kX)[i], found, ctx.num_threads(), *ctx.outputs(kOut)[i]);
  }
  const bool stop = ctx.has_input(kStopUpdate) ? *ctx.input(kStopUpdate).data<bool>() : attrs.stop;
  State state{.scale = ScalarOf<float>(ctx.input(kPrevLossScaling)),
              .good = *ctx.input(kInGoodSteps).data<int32_t>(),
              .bad = *ctx.input(kInBadSteps).data<int32_t>()};
  if (!stop) state = Next(attrs, found, state);
  SetScalar(state.scale, ctx.output(kLossScaling));
  *ctx.output(kOutGoodSteps).mutable_data<int32_t>() = state.good;
  *ctx.output(kOutBadSteps).mutable_data<int32_t>() = state.bad;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "update_loss_scaling",
    .inputs = {{"X", kVariadic},
               {"FoundInfinite", kAnyDType},
               {"PrevLossScaling", kAnyDType},
               {"InGoodSteps", kAnyDType},
               {"InBadSteps", kAnyDType},
               {"StopUpdate", kAnyDType | kOptional}},
    .outputs = {{"Out", kVariadic}, {"LossScaling"}, {"OutGoodSteps"}, {"OutBadSteps"}},
    .parse = ParseAttrs<LossScalingAttrs, ReadAttrs>,
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kLossScaling, ctx.input(kPrevLossScaling));
          ctx.Set(kOutGoodSteps, DType::kInt32);
          ctx.Set(kOutBadSteps, DType::kInt32);
        },
    .infer = Infer,
    .kernels = {{DType::kUndefined, UpdateLossScaling}},
    .inplace = {{kX, kOut, /*each=*/true},
                {kPrevLossScaling, kLossScaling},
                {kInGoodSteps, kOutGoodSteps},
                {kInBadSteps, kOutBadSteps}},
});

}  // namespace
}  // namespace interp::optimizer
