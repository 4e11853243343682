// bpr_loss_grad: sigmoid(X[j] - X[label]) Y@GRAD / (C - 1) for the other classes j, and minus their
// sum for the label.
#include <cmath>

#include "kernels/loss/bpr_loss.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kYGrad = 2;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape y, ResolveBpr(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kYGrad, "Y@GRAD", y));
  ctx.ShareShape(kBprX, kXGrad);
  return absl::OkStatus();
}

template <typename T, typename Index>
absl::Status Rows(KernelContext& ctx, const Index* labels) {
  const Tensor& x_tensor = ctx.input(kBprX);
  const int64_t classes = x_tensor.shape.back(), rows = x_tensor.numel() / classes;
  INTERP_RETURN_IF_ERROR(CheckIndices(labels, rows, classes, "Label"));
  const T* const x = x_tensor.data<T>();
  const T* const y_grad = ctx.input(kYGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ParallelFor(ctx.num_threads(), rows, GrainFor(8 * classes), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* const at = x + row * classes;
      T* const to = x_grad + row * classes;
      const T share = y_grad[row] / static_cast<T>(classes - 1);
      T sum = 0;
      for (int64_t j = 0; j < classes; ++j) {
        if (j == labels[row]) continue;
        to[j] = share / (T{1} + std::exp(at[labels[row]] - at[j]));
        sum += to[j];
      }
      to[labels[row]] = -sum;
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status BprLossGrad(KernelContext& ctx) {
  return WithIndices(ctx.input(kBprLabel), "Label",
                     [&](const auto* labels) { return Rows<T>(ctx, labels); });
}

INTERP_REGISTER_OP(OpDef{
    .type = "bpr_loss_grad",
    .inputs = {{"X"}, {"Label", kAnyDType}, {"Y@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, BprLossGrad<float>}, {DType::kFloat64, BprLossGrad<double>}},
});

}  // namespace
}  // namespace interp
