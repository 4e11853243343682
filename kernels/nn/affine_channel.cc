// affine_channel: Out = X * Scale + Bias by channel.
#include "kernels/nn/affine_channel.h"

#include "kernels/nn/with_channels_last.h"
#include "kernels/norm/channel_stats.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kBias = 2;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t channels, AffineChannels(ctx, kX));
  INTERP_RETURN_IF_ERROR(CheckOfChannels(ctx, kScale, "Scale", channels));
  INTERP_RETURN_IF_ERROR(CheckOfChannels(ctx, kBias, "Bias", channels));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status AffineChannel(KernelContext& ctx) {
  if (ctx.output(kOut).numel() == 0) return absl::OkStatus();
  return WithImagesAlike<T>(
      ctx, ctx.input(kX), ctx.output(kOut), ctx.attrs<AffineAttrs>().channels_last_dims,
      [&](const ImageView& view, const T* x, T* out) {
        ScaleChannels(view, x, ctx.input(kScale).data<T>(), ctx.input(kBias).data<T>(),
                      /*relu=*/false, out, ctx.num_threads());
        return absl::OkStatus();
      });
}

INTERP_REGISTER_OP(OpDef{
    .type = "affine_channel",
    .inputs = {{"X"}, {"Scale"}, {"Bias"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<AffineAttrs, ReadAffine>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, AffineChannel<float>}, {DType::kFloat64, AffineChannel<double>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Scale", "Out@GRAD"},
                 .outputs = {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}},
});

}  // namespace
}  // namespace interp::nn
