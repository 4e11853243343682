// pixel_shuffle: channels become pixels. With r = upscale_factor and NCHW,
//   Out[n, c, h * r + i, w * r + j] = X[n, (c * r + i) * r + j, h, w].
// shuffle_channel: channels, taken as `group` rows, are read column by column.
#include "kernels/tensor/channel_shuffle.h"

#include "absl/strings/str_join.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status CheckImage(const Shape& x) {
  if (x.rank() == 4) return absl::OkStatus();
  return InvalidArgument("'X' has shape ", ToString(x), ", expected rank 4");
}

absl::Status InferPixelShuffle(InferContext& ctx) {
  const PixelShuffleAttrs& attrs = ctx.attrs<PixelShuffleAttrs>();
  Shape shape = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckImage(shape));
  const int64_t area = attrs.factor * attrs.factor;
  if (shape[attrs.channel] % area != 0) {
    return InvalidArgument("'X' has ", shape[attrs.channel],
                           " channels, expected a multiple of the squared 'upscale_factor' ", area);
  }
  shape[attrs.channel] /= area;
  for (const int d : {attrs.height, attrs.height + 1}) {
    INTERP_ASSIGN_OR_RETURN(shape[d], CheckedProduct(shape[d], attrs.factor));
  }
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status PixelShuffle(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  return CopyStrided(ctx, PixelShuffleDims(ctx.attrs<PixelShuffleAttrs>(), x, out), {x}, {out});
}

INTERP_REGISTER_OP(OpDef{
    .type = "pixel_shuffle",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PixelShuffleAttrs, ReadPixelShuffleAttrs>,
    .infer = InferPixelShuffle,
    .kernels = MoveKernels(PixelShuffle),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

absl::Status InferShuffleChannel(InferContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckImage(shape));
  const auto& [group, image] = ctx.attrs<ShuffleChannelAttrs>();
  if (!image.empty() && image != std::vector<int64_t>{shape[1], shape[2], shape[3]}) {
    return InvalidArgument("'X' has shape ", ToString(shape),
                           ", but the reshapes that it replaces ", "expect images of [",
                           absl::StrJoin(image, ","), "]: feed those, or run ",
                           "with --disable-pass=fuse_shuffle");
  }
  if (shape[1] % group != 0) {
    return InvalidArgument("'X' has ", shape[1], " channels, expected a multiple of 'group' ",
                           group);
  }
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status ShuffleChannel(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  return CopyStrided(ctx, ShuffleChannelDims(ctx.attrs<ShuffleChannelAttrs>(), x, out), {x}, {out});
}

INTERP_REGISTER_OP(OpDef{
    .type = "shuffle_channel",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ShuffleChannelAttrs, ReadShuffleChannelAttrs>,
    .infer = InferShuffleChannel,
    .kernels = MoveKernels(ShuffleChannel),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
