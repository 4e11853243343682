// Rows of softmax and log_softmax.
#include "kernels/cuda/row.h"
#include "kernels/cuda/softmax.h"
#include "kernels/nn/softmax.h"

namespace interp::cuda {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <bool kLogarithm>
absl::Status SoftmaxAlong(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.numel() == 0) return absl::OkStatus();
  const nn::softmax::Slices slices = nn::softmax::SliceAlong(x, ctx.attrs<nn::SoftmaxAttrs>().axis);
  return Softmax(x.dtype, kLogarithm, x.raw_data(), {slices.outer, slices.length, slices.inner},
                 ctx.output(kOut).mutable_raw_data(), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("softmax", RowsFor(kFloats, SoftmaxAlong<false>));
INTERP_REGISTER_KERNELS("log_softmax", RowsFor(kFloats, SoftmaxAlong<true>));

}  // namespace
}  // namespace interp::cuda
