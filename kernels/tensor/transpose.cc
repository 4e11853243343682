// transpose, transpose2: dimension i of Out is dimension axis[i] of X.
//
// X is taken in whatever layout it has: turning a channels-last tensor from NCHW to NHWC is then a
// plain copy.
//
// fused_transpose: the same of X without the dimensions `fused_squeeze2_axes`, times `scale`; to
// Out dimensions are added or it is reshaped, as Paddle's oneDNN passes fuse it.
#include <string>

#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/fused_forms.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/view_shapes.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kXShape = 1;

struct TransposeAttrs {
  IntList axis;
  // Of the fused form.
  IntList squeezed;
  IntList unsqueezed;
  IntList reshaped;
  float scale = 1;
};

TransposeAttrs ReadTransposeAttrs(AttrReader& reader) {
  RefuseFusedForms(reader);
  TransposeAttrs attrs;
  attrs.axis = ReadIntListAttr(reader, "axis");
  return attrs;
}

TransposeAttrs ReadFusedAttrs(AttrReader& reader) {
  TransposeAttrs attrs;
  attrs.axis = ReadIntListAttr(reader, "axis");
  attrs.squeezed = ReadIntListAttr(reader, "fused_squeeze2_axes");
  attrs.unsqueezed = ReadIntListAttr(reader, "fused_unsqueeze2_axes");
  attrs.reshaped = ReadIntListAttr(reader, "fused_reshape2_shape");
  attrs.scale = reader.Float("scale", 1);
  const std::string type = reader.String("output_data_type", "");
  if (!type.empty() && type != "fp32") {
    reader.Fail(absl::StrCat("attribute 'output_data_type' is '", type, "', expected fp32"));
  }
  const float shift = reader.Float("shift", 0);
  if (shift != 0) reader.Fail(absl::StrCat("attribute 'shift' is ", shift, ", expected 0"));
  return attrs;
}

// The shape of `x` with its dimensions in the order of `axis`.
absl::StatusOr<Shape> Transposed(const Shape& x, const IntList& axis) {
  if (static_cast<int>(axis.size()) != x.rank()) {
    return InvalidArgument("'axis' has ", axis.size(), " entries, expected the rank of 'X' ",
                           ToString(x));
  }
  std::array<bool, kMaxRank> seen = {};
  Shape shape;
  for (const int64_t entry : axis) {
    INTERP_ASSIGN_OR_RETURN(const int from, ResolveAxis(entry, x.rank()));
    if (std::exchange(seen[from], true)) {
      return InvalidArgument("'axis' lists dimension ", from, " twice");
    }
    shape.push_back(x[from]);
  }
  return shape;
}

absl::Status InferTranspose(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          Transposed(ctx.input(kX).shape, ctx.attrs<TransposeAttrs>().axis));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

// The shape that is transposed.
absl::StatusOr<Shape> SqueezedX(const OpContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const IntList& axes = ctx.attrs<TransposeAttrs>().squeezed;
  if (axes.empty()) return x;
  return Squeezed(x, axes);
}

absl::Status InferFused(InferContext& ctx) {
  const auto& attrs = ctx.attrs<TransposeAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Shape x, SqueezedX(ctx));
  INTERP_ASSIGN_OR_RETURN(Shape shape, Transposed(x, attrs.axis));
  if (!attrs.unsqueezed.empty()) {
    INTERP_ASSIGN_OR_RETURN(shape, Unsqueezed(shape, attrs.unsqueezed));
  } else if (!attrs.reshaped.empty()) {
    INTERP_ASSIGN_OR_RETURN(shape, Reshaped(shape, attrs.reshaped));
  }
  ctx.SetShape(kOut, shape);
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

absl::Status InferTranspose2(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferTranspose(ctx));
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

absl::Status Transpose(KernelContext& ctx) {
  const IntList& axis = ctx.attrs<TransposeAttrs>().axis;
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  const int rank = out.shape.rank();
  CopyDims dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back({out.shape[i], from[*NormalizeAxis(axis[i], rank)], to[i]});
  }
  return CopyStrided(ctx, dims, {x}, {out});
}

absl::Status FusedTranspose(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<TransposeAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Shape shape, SqueezedX(ctx));
  const int rank = shape.rank();
  const Strides from = StridesOf(shape, Layout::kPlain);
  CopyDims dims;
  int64_t inner = shape.numel();
  for (int i = 0; i < rank; ++i) {
    const int axis = *NormalizeAxis(attrs.axis[i], rank);
    if (inner > 0) inner /= shape[axis];
    dims.push_back({shape[axis], from[axis], inner});
  }
  Tensor& out = ctx.output(kOut);
  INTERP_RETURN_IF_ERROR(CopyStrided(ctx, dims, {ctx.input(kX)}, {out}));
  if (attrs.scale == 1) return absl::OkStatus();
  float* const values = out.mutable_data<float>();
  ParallelFor(ctx.num_threads(), out.numel(), kElementwiseGrain,
              [values, scale = attrs.scale](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) values[i] *= scale;
              });
  return absl::OkStatus();
}

OpDef TransposeDef(absl::string_view type, std::vector<SlotDef> outputs,
                   absl::Status (*infer)(InferContext&), absl::string_view gradient_shape) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kAnyLayout}},
      .outputs = std::move(outputs),
      .parse = ParseAttrs<TransposeAttrs, ReadTransposeAttrs>,
      .infer = infer,
      .kernels = MoveKernels(Transpose),
      .gradient = {.inputs = {gradient_shape, "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(TransposeDef("transpose", {{"Out"}}, InferTranspose, "X"));
INTERP_REGISTER_OP(TransposeDef("transpose2", {{"Out"}, {"XShape", kOptional}}, InferTranspose2,
                                "XShape"));
INTERP_REGISTER_OP(OpDef{
    .type = "fused_transpose",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"XShape", kOptional}},
    .parse = ParseAttrs<TransposeAttrs, ReadFusedAttrs>,
    .infer = InferFused,
    .kernels = {{DType::kFloat32, FusedTranspose}},
});

}  // namespace
}  // namespace interp
