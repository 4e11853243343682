// label_smooth_grad: X@GRAD = (1 - epsilon) * Out@GRAD.
#include "core/op_def.h"
#include "kernels/tensor/label_smooth.h"
#include "kernels/util/infer_like.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kXGrad = 0;

template <typename T>
absl::Status LabelSmoothGrad(KernelContext& ctx) {
  const T factor = T{1} - static_cast<T>(ctx.attrs<LabelSmoothAttrs>().epsilon);
  const T* const out_grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ParallelFor(ctx.num_threads(), ctx.input(kOutGrad).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) x_grad[i] = factor * out_grad[i];
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "label_smooth_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<LabelSmoothAttrs, ReadLabelSmoothAttrs>,
    .infer = InferLike<kOutGrad, kXGrad>,
    .kernels = {{DType::kFloat32, LabelSmoothGrad<float>},
                {DType::kFloat64, LabelSmoothGrad<double>}},
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
