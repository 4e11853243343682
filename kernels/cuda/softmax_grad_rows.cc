// Rows of the gradients of softmax and log_softmax.
#include "kernels/cuda/row.h"
#include "kernels/cuda/softmax_grad.h"
#include "kernels/nn/softmax.h"

namespace interp::cuda {
namespace {

constexpr int kOut = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

template <bool kLogarithm>
absl::Status Row(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  const Tensor& out = ctx.input(kOut);
  if (x_grad == nullptr) return absl::OkStatus();
  const auto slices = nn::softmax::SliceAlong(out, ctx.attrs<nn::SoftmaxAttrs>().axis);
  return SoftmaxGradient(out.dtype, kLogarithm, out.raw_data(), ctx.input(kOutGrad).raw_data(),
                         {slices.outer, slices.length, slices.inner}, x_grad->mutable_raw_data(),
                         StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("softmax_grad", RowsFor({DType::kFloat32}, Row<false>));
INTERP_REGISTER_KERNELS("log_softmax_grad", RowsFor({DType::kFloat32}, Row<true>));

}  // namespace
}  // namespace interp::cuda
