// modified_huber_loss: of X and labels Y of 0 or 1, all [n,1]. With z = (2 Y - 1) X, which
// IntermediateVal keeps: -4 z below -1, (1 - z)^2 below 1, then 0.
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kIntermediate = 0;
constexpr int kOut = 1;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kY, "Y", 0, "X"));
  INTERP_RETURN_IF_ERROR(CheckLossColumn(ctx, kX, "X"));
  ctx.SetShape(kIntermediate, ctx.input(kX).shape);
  ctx.SetShape(kOut, ctx.input(kX).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status ModifiedHuberLoss(KernelContext& ctx) {
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  T* const intermediate = ctx.output(kIntermediate).mutable_data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ParallelFor(ctx.num_threads(), ctx.input(kX).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T z = (2 * y[i] - 1) * x[i];
                  intermediate[i] = z;
                  out[i] = z < -1 ? -4 * z : (z < 1 ? (1 - z) * (1 - z) : T{0});
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "modified_huber_loss",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"IntermediateVal"}, {"Out"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, ModifiedHuberLoss<float>},
                {DType::kFloat64, ModifiedHuberLoss<double>}},
    .gradient = {.inputs = {"Y", "IntermediateVal", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
