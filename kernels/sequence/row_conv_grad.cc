// row_conv_grad: X@GRAD[t] = the sum over w of Out@GRAD[t - w] * Filter[w], and Filter@GRAD[w] that
// over t of Out@GRAD[t] * X[t + w], both within the sequence of t.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/sequence/row_windows.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kFilter = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kFilterGrad = 1;

absl::Status InferRowConvGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckRowConv(x, ctx.input(kFilter).shape));
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kOutGrad, "Out@GRAD", kX, "X"));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kFilter, kFilterGrad);
  return absl::OkStatus();
}

void XGradient(const KernelContext& ctx, float* x_grad) {
  const Tensor& x = ctx.input(kX);
  const int64_t window = ctx.input(kFilter).shape[0];
  const int64_t width = ctx.input(kFilter).shape[1];
  const float* const filter = ctx.input(kFilter).data<float>();
  const float* const grad = ctx.input(kOutGrad).data<float>();
  const int64_t grain = GrainFor(width * window);
  ParallelFor(ctx.num_threads(), x.numel() / width, grain, [&](int64_t from, int64_t to) {
    std::fill(x_grad + from * width, x_grad + to * width, 0.0F);
    ForEachSequenceRow(x, from, to, [&](int64_t t, int64_t begin, int64_t) {
      float* const out = x_grad + t * width;
      for (int64_t w = 0; w < std::min(window, t - begin + 1); ++w) {
        const float* const weights = filter + w * width;
        const float* const row = grad + (t - w) * width;
        for (int64_t d = 0; d < width; ++d) out[d] += weights[d] * row[d];
      }
    });
  });
}

// Threads share the rows of the filter, so each sum is over t in order.
void FilterGradient(const KernelContext& ctx, float* filter_grad) {
  const Tensor& x_tensor = ctx.input(kX);
  const int64_t window = ctx.input(kFilter).shape[0];
  const int64_t width = ctx.input(kFilter).shape[1];
  const float* const x = x_tensor.data<float>();
  const float* const grad = ctx.input(kOutGrad).data<float>();
  const int64_t grain = GrainFor(x_tensor.numel());
  ParallelFor(ctx.num_threads(), window, grain, [&](int64_t from, int64_t to) {
    std::fill(filter_grad + from * width, filter_grad + to * width, 0.0F);
    ForEachSequenceRow(x_tensor, 0, x_tensor.numel() / width, [&](int64_t t, int64_t, int64_t end) {
      for (int64_t w = from; w < std::min(to, end - t); ++w) {
        float* const out = filter_grad + w * width;
        const float* const row = x + (t + w) * width;
        for (int64_t d = 0; d < width; ++d) out[d] += grad[t * width + d] * row[d];
      }
    });
  });
}

absl::Status RowConvGrad(KernelContext& ctx) {
  const bool empty = ctx.input(kX).numel() == 0;
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad != nullptr && !empty) XGradient(ctx, x_grad->mutable_data<float>());
  Tensor* const filter_grad = ctx.optional_output(kFilterGrad);
  if (filter_grad == nullptr) return absl::OkStatus();
  if (empty) {
    std::fill_n(filter_grad->mutable_data<float>(), filter_grad->numel(), 0.0F);
  } else {
    FilterGradient(ctx, filter_grad->mutable_data<float>());
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "row_conv_grad",
    .inputs = {{"X"}, {"Filter"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Filter@GRAD", kOptional}},
    .infer = InferRowConvGrad,
    .kernels = {{DType::kFloat32, RowConvGrad}},
});

}  // namespace
}  // namespace interp
