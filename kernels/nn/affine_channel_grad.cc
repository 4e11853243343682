// affine_channel_grad: X@GRAD = Out@GRAD Scale; Scale@GRAD and Bias@GRAD are the sums by channel of
// Out@GRAD X and of Out@GRAD.
#include "kernels/nn/affine_channel.h"
#include "kernels/norm/channel_stats.h"
#include "kernels/norm/norm_grad.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kScaleGrad = 1;
constexpr int kBiasGrad = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t channels, AffineChannels(ctx, kX));
  INTERP_RETURN_IF_ERROR(CheckOfChannels(ctx, kScale, "Scale", channels));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kX).shape));
  ctx.SetShape(kXGrad, ctx.input(kX).shape);
  ctx.SetShape(kScaleGrad, {channels});
  ctx.SetShape(kBiasGrad, {channels});
  return absl::OkStatus();
}

template <typename T>
void Run(KernelContext& ctx, const ImageView& view, const T* x, const T* out_grad, T* x_grad) {
  T* scale_grad = OutputOrNull<T>(ctx, kScaleGrad);
  T* bias_grad = OutputOrNull<T>(ctx, kBiasGrad);
  const size_t channels = static_cast<size_t>(view.channels());
  if (scale_grad != nullptr || bias_grad != nullptr) {
    const std::vector<double> sums = SumByChannel<T, 2>(
        view,
        [=](int64_t at, int64_t) {
          return std::array<T, 2>{out_grad[at], out_grad[at] * x[at]};
        },
        ctx.num_threads());
    for (size_t c = 0; c < channels; ++c) {
      if (scale_grad != nullptr) scale_grad[c] = static_cast<T>(sums[channels + c]);
      if (bias_grad != nullptr) bias_grad[c] = static_cast<T>(sums[c]);
    }
  }
  if (x_grad == nullptr) return;
  const std::vector<T> zeros(channels);
  ScaleChannels(view, out_grad, ctx.input(kScale).data<T>(), zeros.data(),
                /*relu=*/false, x_grad, ctx.num_threads());
}

template <typename T>
absl::Status AffineChannelGrad(KernelContext& ctx) {
  return WithDenseGradImages<T>(
      ctx, {ctx.input(kX), ctx.input(kOutGrad), ctx.optional_output(kXGrad)},
      ctx.attrs<AffineAttrs>().channels_last_dims,
      [&](const ImageView& view, const T* x, const T* out_grad, T* x_grad) {
        Run(ctx, view, x, out_grad, x_grad);
        return absl::OkStatus();
      });
}

INTERP_REGISTER_OP(OpDef{
    .type = "affine_channel_grad",
    .inputs = {{"X"}, {"Scale"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Scale@GRAD", kOptional}, {"Bias@GRAD", kOptional}},
    .parse = ParseAttrs<AffineAttrs, ReadAffine>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, AffineChannelGrad<float>},
                {DType::kFloat64, AffineChannelGrad<double>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp::nn
