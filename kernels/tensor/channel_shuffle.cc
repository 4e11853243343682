// pixel_shuffle: channels become pixels. With r = upscale_factor and NCHW,
//   Out[n, c, h * r + i, w * r + j] = X[n, (c * r + i) * r + j, h, w].
// shuffle_channel: channels, taken as `group` rows, are read column by column.
#include "core/op_def.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status CheckImage(const Shape& x) {
  if (x.rank() == 4) return absl::OkStatus();
  return InvalidArgument("'X' has shape ", ToString(x), ", expected rank 4");
}

struct PixelShuffleAttrs {
  int64_t factor = 1;
  // Logical positions of the dimensions.
  int channel = 1;
  int height = 2;
};

PixelShuffleAttrs ReadPixelShuffleAttrs(AttrReader& reader) {
  PixelShuffleAttrs attrs;
  attrs.factor = reader.Int("upscale_factor", 1);
  if (attrs.factor <= 0) reader.Fail("attribute 'upscale_factor' is not positive");
  if (reader.String("data_format", "NCHW") == "NHWC") {
    attrs.channel = 3;
    attrs.height = 1;
  }
  return attrs;
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
  const auto [r, c, h] = ctx.attrs<PixelShuffleAttrs>();
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  const int w = h + 1;
  const CopyDims dims = {
      {x.shape[0], from[0], to[0]},     {out.shape[c], r * r * from[c], to[c]},
      {x.shape[h], from[h], r * to[h]}, {r, r * from[c], to[h]},
      {x.shape[w], from[w], r * to[w]}, {r, from[c], to[w]},
  };
  CopyStrided(ctx.num_threads(), SizeOf(x.dtype), dims, x.raw_data(), out.mutable_raw_data());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "pixel_shuffle",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PixelShuffleAttrs, ReadPixelShuffleAttrs>,
    .infer = InferPixelShuffle,
    .kernels = {{DType::kUndefined, PixelShuffle}},
    .layout = LayoutRule::kFollows,
});

struct ShuffleChannelAttrs {
  int64_t group = 1;
};

ShuffleChannelAttrs ReadShuffleChannelAttrs(AttrReader& reader) {
  const ShuffleChannelAttrs attrs = {reader.Int("group", 1)};
  if (attrs.group <= 0) reader.Fail("attribute 'group' is not positive");
  return attrs;
}

absl::Status InferShuffleChannel(InferContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckImage(shape));
  const int64_t group = ctx.attrs<ShuffleChannelAttrs>().group;
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
  const int64_t groups = ctx.attrs<ShuffleChannelAttrs>().group;
  const int64_t members = x.shape[1] / groups;
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  const CopyDims dims = {
      {x.shape[0], from[0], to[0]},       {members, from[1], groups * to[1]},
      {groups, members * from[1], to[1]}, {x.shape[2], from[2], to[2]},
      {x.shape[3], from[3], to[3]},
  };
  CopyStrided(ctx.num_threads(), SizeOf(x.dtype), dims, x.raw_data(), out.mutable_raw_data());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "shuffle_channel",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ShuffleChannelAttrs, ReadShuffleChannelAttrs>,
    .infer = InferShuffleChannel,
    .kernels = {{DType::kUndefined, ShuffleChannel}},
    .layout = LayoutRule::kFollows,
});

}  // namespace
}  // namespace interp
