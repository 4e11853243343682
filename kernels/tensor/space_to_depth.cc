// space_to_depth, "reorg" of YOLO v2: X [N,C,H,W] becomes Out [N, C b b, H / b, W / b], b =
// blocksize. Not what the name says: channel (i b + j) C / b^2 + c of X goes to the pixels (h b +
// i, w b + j) of channel c of an image [N, C / b^2, H b, W b], whose memory is then that of Out.
// (Paddle before 2.6: fluid/operators/space_to_depth_op.h.)
#include "kernels/tensor/channel_shuffle.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct Attrs {
  int64_t blocksize = 2;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Long("blocksize", 2)};
  if (attrs.blocksize <= 1) {
    reader.Fail(absl::StrCat("attribute 'blocksize' is ", attrs.blocksize, ", expected 2 or more"));
  }
  return attrs;
}

// The shape of Out. Checks X.
absl::StatusOr<Shape> OutShape(const Shape& x, int64_t b) {
  INTERP_ASSIGN_OR_RETURN(const int64_t area, CheckedProduct(b, b));
  if (x.rank() != 4 || x[1] % area != 0 || x[2] % b != 0 || x[3] % b != 0) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [N,C,H,W] with C a ",
                           "multiple of ", area, " and H and W multiples of 'blocksize' ", b);
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t channels, CheckedProduct(x[1], area));
  return Shape{x[0], channels, x[2] / b, x[3] / b};
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out,
                          OutShape(ctx.input(kX).shape, ctx.attrs<Attrs>().blocksize));
  ctx.SetShape(kOut, out);
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

// The copy from X, of shape `x`, to the image.
CopyDims BlockDims(const Shape& x, int64_t b) {
  const int64_t plane = x[2] * x[3];
  const int64_t channels = x[1] / (b * b);
  return {
      {x[0], x[1] * plane, x[1] * plane}, {b, b * channels * plane, x[3] * b},
      {b, channels * plane, 1},           {channels, plane, plane * b * b},
      {x[2], x[3], x[3] * b * b},         {x[3], 1, b},
  };
}

absl::Status SpaceToDepth(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.numel() == 0) return absl::OkStatus();
  return CopyStrided(ctx, BlockDims(x.shape, ctx.attrs<Attrs>().blocksize), {x},
                     {ctx.output(kOut)});
}

INTERP_REGISTER_OP(OpDef{
    .type = "space_to_depth",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = MoveKernels(SpaceToDepth),
    .gradient = {.inputs = {"Out@GRAD", "X"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 0;
constexpr int kInX = 1;
constexpr int kXGrad = 0;

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out,
                          OutShape(ctx.input(kInX).shape, ctx.attrs<Attrs>().blocksize));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kInX, kXGrad);
  return absl::OkStatus();
}

absl::Status SpaceToDepthGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(kXGrad);
  if (x_grad.numel() == 0) return absl::OkStatus();
  return CopyStrided(ctx, Reversed(BlockDims(x_grad.shape, ctx.attrs<Attrs>().blocksize)),
                     {ctx.input(kOutGrad)}, {x_grad});
}

INTERP_REGISTER_OP(OpDef{
    .type = "space_to_depth_grad",
    .inputs = {{"Out@GRAD"}, {"X", kNoNeedBuffer}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferGrad,
    .kernels = MoveKernels(SpaceToDepthGrad),
});

}  // namespace
}  // namespace interp
