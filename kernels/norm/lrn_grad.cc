// lrn_grad: with m = MidOut and the n channels around c,
//   X@GRAD = Out@GRAD m^-beta - 2 alpha beta X * sum over the channels of Out@GRAD Out / m
#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/norm/lrn.h"
#include "kernels/util/gradient_shape.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 1;
constexpr int kMidOut = 2;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 4 dims");
  }
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOut, "Out", x));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kMidOut, "MidOut", x));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", x));
  ctx.SetShape(kXGrad, ctx.input(kX).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status LrnGrad(KernelContext& ctx) {
  Tensor* x_grad_tensor = ctx.optional_output(kXGrad);
  if (x_grad_tensor == nullptr) return absl::OkStatus();
  const auto& attrs = ctx.attrs<LrnAttrs>();
  const ImageView view = ViewImage(ctx.input(kX), attrs.channels_last_dims);
  const T* x = ctx.input(kX).data<T>();
  const T* out = ctx.input(kOut).data<T>();
  const T* mid = ctx.input(kMidOut).data<T>();
  const T* out_grad = ctx.input(kOutGrad).data<T>();
  T* x_grad = x_grad_tensor->mutable_data<T>();
  const T beta = static_cast<T>(attrs.beta);
  const T factor = T{2} * static_cast<T>(attrs.alpha) * beta;
  const int64_t channels = view.channels();
  const int64_t half = attrs.size / 2;
  ForEachLrnPixel(view, ctx.num_threads(), [=](int64_t pixel, int64_t stride) {
    for (int64_t c = 0; c < channels; ++c) {
      T sum = 0;
      const int64_t last = std::min(channels - 1, c + half);
      for (int64_t j = std::max<int64_t>(0, c - half); j <= last; ++j) {
        const int64_t at = pixel + j * stride;
        sum += out_grad[at] * out[at] / mid[at];
      }
      const int64_t at = pixel + c * stride;
      x_grad[at] = out_grad[at] * std::pow(mid[at], -beta) - factor * x[at] * sum;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lrn_grad",
    .inputs = {{"X"}, {"Out"}, {"MidOut"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<LrnAttrs, ReadLrn>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, LrnGrad<float>}, {DType::kFloat64, LrnGrad<double>}},
    .layout = LayoutRule::kFollows,
});

}  // namespace
}  // namespace interp::nn
