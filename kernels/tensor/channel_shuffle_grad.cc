// pixel_shuffle_grad and shuffle_channel_grad: the same copies the other way round.
#include "kernels/tensor/channel_shuffle.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kXGrad = 0;

absl::Status InferPixelShuffleGrad(InferContext& ctx) {
  const PixelShuffleAttrs& attrs = ctx.attrs<PixelShuffleAttrs>();
  Shape shape = ctx.input(kOutGrad).shape;
  if (shape.rank() != 4 || shape[attrs.height] % attrs.factor != 0 ||
      shape[attrs.height + 1] % attrs.factor != 0) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(shape),
                           ", expected rank 4 and sizes that are multiples of 'upscale_factor' ",
                           attrs.factor);
  }
  for (const int d : {attrs.height, attrs.height + 1}) {
    INTERP_ASSIGN_OR_RETURN(shape[attrs.channel],
                            CheckedProduct(shape[attrs.channel], attrs.factor));
    shape[d] /= attrs.factor;
  }
  ctx.SetShape(kXGrad, shape);
  return absl::OkStatus();
}

absl::Status PixelShuffleGrad(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  const Tensor& grad = ctx.input(kOutGrad);
  return CopyStrided(ctx, Reversed(PixelShuffleDims(ctx.attrs<PixelShuffleAttrs>(), *x_grad, grad)),
                     {grad}, {*x_grad});
}

absl::Status InferShuffleChannelGrad(InferContext& ctx) {
  const Shape& shape = ctx.input(kOutGrad).shape;
  const int64_t group = ctx.attrs<ShuffleChannelAttrs>().group;
  if (shape.rank() != 4 || shape[1] % group != 0) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(shape),
                           ", expected rank 4 and a multiple of 'group' ", group, " channels");
  }
  ctx.SetShape(kXGrad, ctx.input(kOutGrad).shape);
  return absl::OkStatus();
}

absl::Status ShuffleChannelGrad(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  const Tensor& grad = ctx.input(kOutGrad);
  return CopyStrided(ctx,
                     Reversed(ShuffleChannelDims(ctx.attrs<ShuffleChannelAttrs>(), *x_grad, grad)),
                     {grad}, {*x_grad});
}

INTERP_REGISTER_OP(OpDef{
    .type = "pixel_shuffle_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<PixelShuffleAttrs, ReadPixelShuffleAttrs>,
    .infer = InferPixelShuffleGrad,
    .kernels = MoveKernels(PixelShuffleGrad),
    .layout = LayoutRule::kFollows,
});

INTERP_REGISTER_OP(OpDef{
    .type = "shuffle_channel_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<ShuffleChannelAttrs, ReadShuffleChannelAttrs>,
    .infer = InferShuffleChannelGrad,
    .kernels = MoveKernels(ShuffleChannelGrad),
    .layout = LayoutRule::kFollows,
});

}  // namespace
}  // namespace interp
