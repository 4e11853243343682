// modified_huber_loss_grad: with z of IntermediateVal, the slope -4 below -1, -2 (1 - z) below 1,
// then 0; times (2 Y - 1) Out@GRAD.
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"

namespace interp {
namespace {

constexpr int kY = 0;
constexpr int kIntermediate = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kIntermediate, "IntermediateVal", 0, "Y"));
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kOutGrad, "Out@GRAD", 0, "Y"));
  ctx.ShareShape(kY, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status ModifiedHuberLossGrad(KernelContext& ctx) {
  const T* const y = ctx.input(kY).data<T>();
  const T* const intermediate = ctx.input(kIntermediate).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ParallelFor(ctx.num_threads(), ctx.input(kY).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T z = intermediate[i];
                  const T slope = z < -1 ? T{-4} : (z < 1 ? -2 * (1 - z) : T{0});
                  x_grad[i] = slope * (2 * y[i] - 1) * grad[i];
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "modified_huber_loss_grad",
    .inputs = {{"Y"}, {"IntermediateVal"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, ModifiedHuberLossGrad<float>},
                {DType::kFloat64, ModifiedHuberLossGrad<double>}},
});

}  // namespace
}  // namespace interp
