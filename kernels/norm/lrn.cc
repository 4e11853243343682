// lrn: local response normalisation across channels.
//   MidOut = k + alpha * sum of X^2 over the n channels around c,   Out = X * MidOut^-beta
#include "kernels/norm/lrn.h"

#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/data_or_null.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kMidOut = 1;

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 4 dims");
  }
  ctx.ShareShape(kX, kOut);
  ctx.ShareShape(kX, kMidOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status Lrn(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LrnAttrs>();
  const ImageView view = ViewImage(ctx.input(kX), attrs.channels_last_dims);
  const T* x = ctx.input(kX).data<T>();
  T* out = ctx.output(kOut).mutable_data<T>();
  Tensor* mid_tensor = ctx.optional_output(kMidOut);
  T* mid = DataOrNull<T>(mid_tensor);
  const T k = static_cast<T>(attrs.k);
  const T alpha = static_cast<T>(attrs.alpha);
  const T beta = static_cast<T>(attrs.beta);
  const int64_t channels = view.channels();
  const int64_t half = attrs.size / 2;
  ForEachLrnPixel(view, ctx.num_threads(), [=](int64_t pixel, int64_t stride) {
    for (int64_t c = 0; c < channels; ++c) {
      T sum = 0;
      const int64_t last = std::min(channels - 1, c + half);
      for (int64_t j = std::max<int64_t>(0, c - half); j <= last; ++j) {
        sum += x[pixel + j * stride] * x[pixel + j * stride];
      }
      const T base = k + alpha * sum;
      out[pixel + c * stride] = x[pixel + c * stride] * std::pow(base, -beta);
      if (mid != nullptr) mid[pixel + c * stride] = base;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lrn",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"MidOut", kOptional}},
    .parse = ParseAttrs<LrnAttrs, ReadLrn>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Lrn<float>}, {DType::kFloat64, Lrn<double>}},
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"X", "Out", "MidOut", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp::nn
