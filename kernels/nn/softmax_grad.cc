// softmax_grad: X@GRAD = (Out@GRAD - sum of Out@GRAD Out) Out, log_softmax_grad: X@GRAD = Out@GRAD
// - e^Out sum of Out@GRAD, with sums along the axis.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/nn/softmax.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::nn {
namespace {

constexpr int kOut = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  const Shape& out = ctx.input(kOut).shape;
  INTERP_RETURN_IF_ERROR(CheckAxis(ctx.attrs<SoftmaxAttrs>().axis, out, "Out"));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kOut, kXGrad);
  return absl::OkStatus();
}

// The gradient of one element, given the sum along the axis.
template <typename T, bool kLog>
T Element(T out, T grad, T sum) {
  if constexpr (kLog) return grad - Exp(out) * sum;
  return (grad - sum) * out;
}

template <typename T, bool kLog>
void GradRow(const T* out, const T* grad, int64_t n, T* x_grad) {
  const T sum = kLog ? RowSum(grad, n) : Dot(out, grad, n);
  for (int64_t i = 0; i < n; ++i) x_grad[i] = Element<T, kLog>(out[i], grad[i], sum);
}

// Columns [begin, end) of a length x inner matrix; vectors run along the columns.
template <typename T, bool kLog>
void GradColumns(const T* out, const T* grad, const softmax::Slices& slices, int64_t begin,
                 int64_t end, T* x_grad) {
  constexpr int64_t kBlock = 64;
  for (int64_t j = begin; j < end; j += kBlock) {
    const int64_t width = std::min(kBlock, end - j);
    T sum[kBlock] = {};
    for (int64_t k = 0; k < slices.length; ++k) {
      const T* o = out + k * slices.inner + j;
      const T* g = grad + k * slices.inner + j;
      for (int64_t i = 0; i < width; ++i) sum[i] += kLog ? g[i] : g[i] * o[i];
    }
    for (int64_t k = 0; k < slices.length; ++k) {
      const int64_t at = k * slices.inner + j;
      for (int64_t i = 0; i < width; ++i) {
        x_grad[at + i] = Element<T, kLog>(out[at + i], grad[at + i], sum[i]);
      }
    }
  }
}

template <typename T, bool kLog>
absl::Status SoftmaxGrad(KernelContext& ctx) {
  Tensor* x_grad_tensor = ctx.optional_output(kXGrad);
  const Tensor& out_tensor = ctx.input(kOut);
  if (x_grad_tensor == nullptr || out_tensor.numel() == 0) return absl::OkStatus();
  const softmax::Slices slices = softmax::SliceAlong(out_tensor, ctx.attrs<SoftmaxAttrs>().axis);
  const T* out = out_tensor.data<T>();
  const T* grad = ctx.input(kOutGrad).data<T>();
  T* x_grad = x_grad_tensor->mutable_data<T>();
  const int64_t block = slices.length * slices.inner;
  const int64_t grain = GrainFor(2 * slices.length);
  ParallelFor(ctx.num_threads(), slices.outer * slices.inner, grain,
              [=](int64_t begin, int64_t end) {
                while (begin < end) {
                  const int64_t o = begin / slices.inner;
                  const int64_t stop = std::min(end, (o + 1) * slices.inner);
                  const int64_t at = o * block;
                  if (slices.inner == 1) {
                    GradRow<T, kLog>(out + at, grad + at, slices.length, x_grad + at);
                  } else {
                    GradColumns<T, kLog>(out + at, grad + at, slices, begin - o * slices.inner,
                                         stop - o * slices.inner, x_grad + at);
                  }
                  begin = stop;
                }
              });
  return absl::OkStatus();
}

template <bool kLog>
OpDef GradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"Out"}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional}},
      .parse = ParseAttrs<SoftmaxAttrs, ReadSoftmax>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, SoftmaxGrad<float, kLog>},
                  {DType::kFloat64, SoftmaxGrad<double, kLog>}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kOutGrad, kXGrad}, {kOut, kXGrad}},
  };
}

INTERP_REGISTER_OP(GradDef<false>("softmax_grad"));
INTERP_REGISTER_OP(GradDef<true>("log_softmax_grad"));

}  // namespace
}  // namespace interp::nn
