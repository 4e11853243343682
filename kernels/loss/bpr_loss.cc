// bpr_loss, Bayesian personalised ranking: the mean over the other classes j of
// log(1 + exp(X[j] - X[label])), row by row.
#include "kernels/loss/bpr_loss.h"

#include <cmath>

#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kY = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape y, ResolveBpr(ctx));
  ctx.SetShape(kY, y);
  ShareLod(ctx.input(kBprX), ctx.output(kY));
  return absl::OkStatus();
}

// As in Paddle an infinite exponential is 1e20.
template <typename T>
T SoftPlus(T x) {
  const T e = std::exp(x);
  return std::log(T{1} + (std::isinf(e) ? static_cast<T>(1e20) : e));
}

template <typename T, typename Index>
absl::Status Rows(KernelContext& ctx, const Index* labels) {
  const Tensor& x_tensor = ctx.input(kBprX);
  const int64_t classes = x_tensor.shape.back(), rows = x_tensor.numel() / classes;
  INTERP_RETURN_IF_ERROR(CheckIndices(labels, rows, classes, "Label"));
  const T* const x = x_tensor.data<T>();
  T* const y = ctx.output(kY).mutable_data<T>();
  ParallelFor(ctx.num_threads(), rows, GrainFor(8 * classes), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* const at = x + row * classes;
      T sum = 0;
      for (int64_t j = 0; j < classes; ++j) {
        if (j != labels[row]) sum += SoftPlus(at[j] - at[labels[row]]);
      }
      y[row] = sum / static_cast<T>(classes - 1);
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status BprLoss(KernelContext& ctx) {
  return WithIndices(ctx.input(kBprLabel), "Label",
                     [&](const auto* labels) { return Rows<T>(ctx, labels); });
}

INTERP_REGISTER_OP(OpDef{
    .type = "bpr_loss",
    .inputs = {{"X"}, {"Label", kAnyDType}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, BprLoss<float>}, {DType::kFloat64, BprLoss<double>}},
    .gradient = {.inputs = {"X", "Label", "Y@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
