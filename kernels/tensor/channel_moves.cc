// Channels of images that change their places; each gradient is the same copy back.
// channel_shuffle: channels, taken as `groups` rows, are read column by column.
// pixel_unshuffle: pixels become channels, the reverse of pixel_shuffle.
// temporal_shift: of frames of videos, `seg_num` each, the first channels come from the frame
// before, as many more from the frame behind.
#include <algorithm>

#include "kernels/tensor/channel_shuffle.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status CheckRank(const Shape& x) {
  if (x.rank() == 4) return absl::OkStatus();
  return InvalidArgument("the image has shape ", ToString(x), ", expected rank 4");
}

// Whether channels are the last dimension.
bool ReadChannelsLast(AttrReader& reader) {
  return ReadChoice<bool>(reader, "data_format", {{"NCHW", false}, {"NHWC", true}});
}

struct GroupAttrs {
  int64_t groups = 1;
  bool channels_last = false;
};

GroupAttrs ReadGroupAttrs(AttrReader& reader) {
  const GroupAttrs attrs = {reader.Int("groups", 1), ReadChannelsLast(reader)};
  if (attrs.groups < 1) {
    reader.Fail(absl::StrCat("attribute 'groups' is ", attrs.groups, ", expected at least 1"));
  }
  return attrs;
}

absl::Status InferGroups(InferContext& ctx) {
  const GroupAttrs& attrs = ctx.attrs<GroupAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckRank(x));
  const int64_t channels = x[attrs.channels_last ? 3 : 1];
  if (channels % attrs.groups != 0) {
    return InvalidArgument("the image has ", channels,
                           " channels, expected a multiple of 'groups' ", attrs.groups);
  }
  ctx.SetShape(kOut, x);
  return absl::OkStatus();
}

// The copy of the op, or back.
template <bool kBack>
absl::Status ChannelShuffle(KernelContext& ctx) {
  const GroupAttrs& attrs = ctx.attrs<GroupAttrs>();
  const Tensor& x = ctx.input(kX);
  const int channel = attrs.channels_last ? 3 : 1;
  const int64_t inner = x.shape.numel(channel + 1, 4);
  const int64_t block = x.shape[channel] * inner;
  const int64_t members = x.shape[channel] / attrs.groups;
  if (x.numel() == 0) return absl::OkStatus();
  CopyDims dims = {{x.numel() / block, block, block},
                   {members, inner, attrs.groups * inner},
                   {attrs.groups, members * inner, inner},
                   {inner, 1, 1}};
  if (kBack) dims = Reversed(dims);
  return CopyStrided(ctx, dims, {x}, {ctx.output(kOut)});
}

OpDef MoveDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&),
              absl::Status (*infer)(InferContext&), KernelFn kernel) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = infer,
      .kernels = MoveKernels(kernel),
      .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

OpDef MoveGradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&),
                  absl::Status (*infer)(InferContext&), KernelFn kernel) {
  OpDef def = MoveDef(type, parse, infer, kernel);
  def.inputs = {{"Out@GRAD"}};
  def.outputs = {{"X@GRAD"}};
  def.gradient = {};
  return def;
}

INTERP_REGISTER_OP(MoveDef("channel_shuffle", ParseAttrs<GroupAttrs, ReadGroupAttrs>, InferGroups,
                           ChannelShuffle<false>));
INTERP_REGISTER_OP(MoveGradDef("channel_shuffle_grad", ParseAttrs<GroupAttrs, ReadGroupAttrs>,
                               InferGroups, ChannelShuffle<true>));

PixelShuffleAttrs ReadUnshuffleAttrs(AttrReader& reader) {
  PixelShuffleAttrs attrs = {.factor = reader.Int("downscale_factor", 1)};
  if (attrs.factor < 1 || attrs.factor > 1 << 20) {
    reader.Fail(
        absl::StrCat("attribute 'downscale_factor' is ", attrs.factor, ", expected 1 to 1048576"));
  }
  if (ReadChannelsLast(reader)) attrs = {attrs.factor, 3, 1};
  return attrs;
}

absl::Status InferUnshuffle(InferContext& ctx) {
  const auto [r, channel, height] = ctx.attrs<PixelShuffleAttrs>();
  Shape shape = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckRank(shape));
  for (const int d : {height, height + 1}) {
    if (shape[d] % r != 0) {
      return InvalidArgument("'X' has shape ", ToString(ctx.input(kX).shape),
                             ", expected sizes that are multiples of 'downscale_factor' ", r);
    }
    shape[d] /= r;
    INTERP_ASSIGN_OR_RETURN(shape[channel], CheckedProduct(shape[channel], r));
  }
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status InferUnshuffleGrad(InferContext& ctx) {
  const auto [r, channel, height] = ctx.attrs<PixelShuffleAttrs>();
  Shape shape = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckRank(shape));
  if (shape[channel] % (r * r) != 0) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(shape), ", expected a multiple of ",
                           r * r, " channels");
  }
  shape[channel] /= r * r;
  for (const int d : {height, height + 1}) {
    INTERP_ASSIGN_OR_RETURN(shape[d], CheckedProduct(shape[d], r));
  }
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status Unshuffle(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.numel() == 0) return absl::OkStatus();
  return CopyStrided(ctx, Reversed(PixelShuffleDims(ctx.attrs<PixelShuffleAttrs>(), out, x)), {x},
                     {out});
}

absl::Status UnshuffleGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kX);
  Tensor& x_grad = ctx.output(kOut);
  if (grad.numel() == 0) return absl::OkStatus();
  return CopyStrided(ctx, PixelShuffleDims(ctx.attrs<PixelShuffleAttrs>(), grad, x_grad), {grad},
                     {x_grad});
}

INTERP_REGISTER_OP(MoveDef("pixel_unshuffle", ParseAttrs<PixelShuffleAttrs, ReadUnshuffleAttrs>,
                           InferUnshuffle, Unshuffle));
INTERP_REGISTER_OP(MoveGradDef("pixel_unshuffle_grad",
                               ParseAttrs<PixelShuffleAttrs, ReadUnshuffleAttrs>,
                               InferUnshuffleGrad, UnshuffleGrad));

struct ShiftAttrs {
  int64_t frames = 1;
  float ratio = 0.25f;
  bool channels_last = false;
};

ShiftAttrs ReadShiftAttrs(AttrReader& reader) {
  const ShiftAttrs attrs = {reader.Int("seg_num", 1), reader.Float("shift_ratio", 0.25f),
                            ReadChannelsLast(reader)};
  if (attrs.frames < 1) {
    reader.Fail(absl::StrCat("attribute 'seg_num' is ", attrs.frames, ", expected at least 1"));
  }
  if (!(attrs.ratio > 0 && attrs.ratio < 0.5f)) {
    reader.Fail(absl::StrCat("attribute 'shift_ratio' is ", attrs.ratio,
                             ", expected more than 0 and less than 0.5"));
  }
  return attrs;
}

absl::Status InferShift(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckRank(x));
  const int64_t frames = ctx.attrs<ShiftAttrs>().frames;
  if (x[0] % frames != 0) {
    return InvalidArgument("there are ", x[0], " frames, expected a multiple of 'seg_num' ",
                           frames);
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// Copies channels [begin, end) of every frame to the one `steps` behind it in its video.
absl::Status ShiftChannels(KernelContext& ctx, int64_t begin, int64_t end, int64_t steps) {
  const ShiftAttrs& attrs = ctx.attrs<ShiftAttrs>();
  const Tensor& x = ctx.input(kX);
  const int channel = attrs.channels_last ? 3 : 1;
  const int64_t inner = x.shape.numel(channel + 1, 4);
  const int64_t block = x.shape[channel] * inner;
  const int64_t frame = x.shape.numel(1, 4);
  const int64_t kept = attrs.frames - std::abs(steps);
  if (begin >= end || kept <= 0 || x.numel() == 0) return absl::OkStatus();
  const int64_t from = begin * inner + std::max<int64_t>(-steps, 0) * frame;
  const int64_t to = begin * inner + std::max<int64_t>(steps, 0) * frame;
  const CopyDims dims = {{x.shape[0] / attrs.frames, attrs.frames * frame, attrs.frames * frame},
                         {kept, frame, frame},
                         {frame / block, block, block},
                         {(end - begin) * inner, 1, 1}};
  return CopyStrided(ctx, dims, {x, from}, {ctx.output(kOut), to});
}

template <bool kBack>
absl::Status TemporalShift(KernelContext& ctx) {
  const ShiftAttrs& attrs = ctx.attrs<ShiftAttrs>();
  const int64_t channels = ctx.input(kX).shape[attrs.channels_last ? 3 : 1];
  const auto first = static_cast<int64_t>(static_cast<float>(channels) * attrs.ratio);
  const auto second = static_cast<int64_t>(static_cast<float>(channels) * 2 * attrs.ratio);
  INTERP_RETURN_IF_ERROR(FillZero(ctx, ctx.output(kOut)));
  INTERP_RETURN_IF_ERROR(ShiftChannels(ctx, 0, first, kBack ? -1 : 1));
  INTERP_RETURN_IF_ERROR(ShiftChannels(ctx, first, second, kBack ? 1 : -1));
  return ShiftChannels(ctx, second, channels, 0);
}

INTERP_REGISTER_OP(MoveDef("temporal_shift", ParseAttrs<ShiftAttrs, ReadShiftAttrs>, InferShift,
                           TemporalShift<false>));
INTERP_REGISTER_OP(MoveGradDef("temporal_shift_grad", ParseAttrs<ShiftAttrs, ReadShiftAttrs>,
                               InferShift, TemporalShift<true>));

}  // namespace
}  // namespace interp
