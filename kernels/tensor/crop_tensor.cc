// crop_tensor: Out = the part of X of shape `shape` that starts at `offsets`; -1 in the shape
// reaches to the end. Both are attributes, a tensor or a list of tensors.
// crop_tensor_grad: X@GRAD = Out@GRAD there, 0 elsewhere.
// crop, crop_grad: the same with the shape of Y, where there is one.
#include <utility>

#include "absl/strings/str_join.h"
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct CropAttrs {
  IntList shape;
  IntList offsets;
};

CropAttrs ReadCropAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "shape"), ReadIntListAttr(reader, "offsets")};
}

constexpr IntSlots kShapeSlots = {.name = "shape", .tensor = 1, .list = 2};
constexpr IntSlots kOffsetSlots = {.name = "offsets", .tensor = 3, .list = 4};

// Offsets that lie within X; none means zeros.
absl::StatusOr<IntList> ReadOffsets(const OpContext& ctx, const IntSlots& slots, const Shape& x) {
  INTERP_ASSIGN_OR_RETURN(IntList offsets, ReadIntList(ctx, slots, ctx.attrs<CropAttrs>().offsets));
  if (offsets.empty()) offsets.assign(x.rank(), 0);
  bool fits = static_cast<int>(offsets.size()) == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = offsets[d] >= 0 && offsets[d] <= x[d];
  if (fits) return offsets;
  return InvalidArgument("'offsets' are [", absl::StrJoin(offsets, ","), "], expected ", x.rank(),
                         " positions in 'X' ", ToString(x));
}

// Out with the part of X that has these sizes and offsets.
absl::Status InferPart(InferContext& ctx, const IntList& sizes, const IntList& offsets) {
  const Shape& x = ctx.input(kX).shape;
  if (static_cast<int>(sizes.size()) != x.rank()) {
    return InvalidArgument("'shape' has ", sizes.size(), " entries, expected ", x.rank());
  }
  Shape out;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t left = x[d] - offsets[d];
    const int64_t size = sizes[d] == -1 ? left : sizes[d];
    if (size < 0 || size > left) {
      return InvalidArgument("'shape' is [", absl::StrJoin(sizes, ","), "], at 'offsets' [",
                             absl::StrJoin(offsets, ","), "] more than 'X' ", ToString(x), " has");
    }
    out.push_back(size);
  }
  ctx.SetShape(kOut, out);
  ShareLod(ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status InferCropTensor(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList offsets,
                          ReadOffsets(ctx, kOffsetSlots, ctx.input(kX).shape));
  INTERP_ASSIGN_OR_RETURN(const IntList sizes,
                          ReadIntList(ctx, kShapeSlots, ctx.attrs<CropAttrs>().shape));
  return InferPart(ctx, sizes, offsets);
}

constexpr int kY = 1;
constexpr IntSlots kOffsetsAlone = {.name = "offsets", .tensor = 2};

absl::Status InferCrop(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList offsets,
                          ReadOffsets(ctx, kOffsetsAlone, ctx.input(kX).shape));
  IntList sizes = ctx.attrs<CropAttrs>().shape;
  if (const Tensor* const y = ctx.optional_input(kY)) {
    sizes.assign(y->shape.dims().begin(), y->shape.dims().end());
  }
  return InferPart(ctx, sizes, offsets);
}

// The part of `whole` at the offsets, and all of `part`.
struct CropCopy {
  CopyDims dims;  // from whole to part
  int64_t start = 0;
};
CropCopy LayOut(const Tensor& whole, const Tensor& part, const IntList& offsets) {
  CropCopy copy;
  const Strides from = StridesOf(whole);
  const Strides to = StridesOf(part);
  for (int d = 0; d < whole.shape.rank(); ++d) {
    copy.start += offsets[d] * from[d];
    copy.dims.push_back({part.shape[d], from[d], to[d]});
  }
  return copy;
}

template <const IntSlots& kSlots>
absl::Status Crop(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const IntList offsets, ReadOffsets(ctx, kSlots, x.shape));
  const CropCopy copy = LayOut(x, out, offsets);
  return CopyStrided(ctx, copy.dims, {x, copy.start}, {out});
}

constexpr int kListFlags = kOptional | kAnyDType | kValueInInfer;

INTERP_REGISTER_OP(OpDef{
    .type = "crop_tensor",
    .inputs = {{"X"},
               {"Shape", kListFlags},
               {"ShapeTensor", kListFlags | kVariadic},
               {"Offsets", kListFlags},
               {"OffsetsTensor", kListFlags | kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CropAttrs, ReadCropAttrs>,
    .infer = InferCropTensor,
    .kernels = MoveKernels(Crop<kOffsetSlots>),
    .gradient = {.inputs = {"X", "Offsets", "OffsetsTensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});
INTERP_REGISTER_OP(OpDef{
    .type = "crop",
    .inputs = {{"X"}, {"Y", kOptional | kNoNeedBuffer | kAnyDType}, {"Offsets", kListFlags}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CropAttrs, ReadCropAttrs>,
    .infer = WithoutLod<InferCrop, kOut>,
    .kernels = MoveKernels(Crop<kOffsetsAlone>),
    .gradient = {.inputs = {"X", "Offsets", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

// crop_grad has no list.
constexpr IntSlots kGradOffsetSlots = {.name = "offsets", .tensor = 1, .list = 2};
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

absl::Status InferCropGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& grad = ctx.input(kOutGrad).shape;
  INTERP_ASSIGN_OR_RETURN(const IntList offsets, ReadOffsets(ctx, kGradOffsetSlots, x));
  bool fits = grad.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = offsets[d] + grad[d] <= x[d];
  if (!fits) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(grad), ", at 'offsets' [",
                           absl::StrJoin(offsets, ","), "] more than 'X' ", ToString(x), " has");
  }
  ctx.SetShape(kXGrad, ctx.input(kX).shape);
  return absl::OkStatus();
}

absl::Status CropGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  Tensor& x_grad = ctx.output(kXGrad);
  INTERP_RETURN_IF_ERROR(FillZero(ctx, x_grad));
  if (grad.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const IntList offsets, ReadOffsets(ctx, kGradOffsetSlots, x_grad.shape));
  CropCopy copy = LayOut(x_grad, grad, offsets);
  for (CopyDim& dim : copy.dims) std::swap(dim.src_stride, dim.dst_stride);
  return CopyStrided(ctx, copy.dims, {grad}, {x_grad, copy.start});
}

OpDef CropGradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer},
                 {"Offsets", kListFlags},
                 {"OffsetsTensor", kListFlags | kVariadic},
                 {"Out@GRAD"}},
      .outputs = {{"X@GRAD"}},
      .parse = ParseAttrs<CropAttrs, ReadCropAttrs>,
      .infer = InferCropGrad,
      .kernels = {{DType::kFloat32, CropGrad},
                  {DType::kFloat64, CropGrad},
                  DeviceMoveKernel(DType::kFloat32, CropGrad),
                  DeviceMoveKernel(DType::kFloat64, CropGrad)},
  };
}

INTERP_REGISTER_OP(CropGradDef("crop_tensor_grad"));
INTERP_REGISTER_OP(CropGradDef("crop_grad"));

}  // namespace
}  // namespace interp
