// pad_constant_like: Out is Y, padded behind the end of every dimension by `pad_value` to the shape
// of X. (Paddle before 2.0: fluid/operators/pad_constant_like_op.h.)
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

struct Attrs {
  float pad_value = 0;
};

Attrs ReadAttrs(AttrReader& reader) { return {reader.Float("pad_value", 0)}; }

// InvalidArgument unless `small` fits into `large`, the shape of input `name`.
absl::Status CheckFits(const Shape& small, const Shape& large, absl::string_view name) {
  bool fits = small.rank() == large.rank();
  for (int d = 0; fits && d < small.rank(); ++d) fits = small[d] <= large[d];
  if (fits) return absl::OkStatus();
  return InvalidArgument("input 'Y' has shape ", ToString(small),
                         ", expected no more than that of '", name, "', ", ToString(large));
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckFits(ctx.input(kY).shape, ctx.input(kX).shape, "X"));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// The elements that both tensors have, of the smaller one's shape.
CopyDims CommonDims(const Tensor& from, const Tensor& to, const Shape& shape) {
  const Strides source = StridesOf(from);
  const Strides target = StridesOf(to);
  CopyDims dims;
  for (int d = 0; d < shape.rank(); ++d) dims.push_back({shape[d], source[d], target[d]});
  return dims;
}

absl::Status Pad(KernelContext& ctx) {
  const Tensor& y = ctx.input(kY);
  Tensor& out = ctx.output(kOut);
  const double value = static_cast<double>(ctx.attrs<Attrs>().pad_value);
  INTERP_RETURN_IF_ERROR(FillElements(ctx, ToScalarBytes(out.dtype, value), out));
  if (y.numel() == 0) return absl::OkStatus();
  return CopyStrided(ctx, CommonDims(y, out, y.shape), {y}, {out});
}

DType DTypeOfY(const DTypeContext& ctx) { return ctx.input(kY); }

INTERP_REGISTER_OP(OpDef{
    .type = "pad_constant_like",
    .inputs = {{"X", kNoNeedBuffer | kAnyDType | kAnyLayout}, {"Y"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .kernel_dtype = DTypeOfY,
    .infer = Infer,
    .kernels = MoveKernels(Pad),
    .gradient = {.inputs = {"Y", "Out@GRAD"}, .outputs = {"Y@GRAD"}},
});

constexpr int kInY = 0;
constexpr int kOutGrad = 1;
constexpr int kYGrad = 0;

absl::Status InferGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckFits(ctx.input(kInY).shape, ctx.input(kOutGrad).shape, "Out@GRAD"));
  ctx.ShareShape(kInY, kYGrad);
  return absl::OkStatus();
}

absl::Status PadGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  Tensor& y_grad = ctx.output(kYGrad);
  if (y_grad.numel() == 0) return absl::OkStatus();
  return CopyStrided(ctx, CommonDims(grad, y_grad, y_grad.shape), {grad}, {y_grad});
}

INTERP_REGISTER_OP(OpDef{
    .type = "pad_constant_like_grad",
    .inputs = {{"Y", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"Y@GRAD"}},
    .infer = InferGrad,
    .kernels = MoveKernels(PadGrad),
});

}  // namespace
}  // namespace interp
