// transpose, transpose2: dimension i of Out is dimension axis[i] of X.
//
// X is taken in whatever layout it has: turning a channels-last tensor from NCHW to NHWC is then a
// plain copy.
#include "core/op_def.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kXShape = 1;

struct TransposeAttrs {
  IntList axis;
};

TransposeAttrs ReadTransposeAttrs(AttrReader& reader) { return {ReadIntListAttr(reader, "axis")}; }

absl::Status InferTranspose(InferContext& ctx) {
  const IntList& axis = ctx.attrs<TransposeAttrs>().axis;
  const Shape& x = ctx.input(kX).shape;
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
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
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
  CopyStrided(ctx.num_threads(), SizeOf(x.dtype), dims, x.raw_data(), out.mutable_raw_data());
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
      .kernels = {{DType::kUndefined, Transpose}},
      .gradient = {.inputs = {gradient_shape, "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(TransposeDef("transpose", {{"Out"}}, InferTranspose, "X"));
INTERP_REGISTER_OP(TransposeDef("transpose2", {{"Out"}, {"XShape", kOptional}}, InferTranspose2,
                                "XShape"));

}  // namespace
}  // namespace interp
