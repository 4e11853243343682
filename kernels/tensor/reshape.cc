// reshape, reshape2: Out = X under another shape. In `shape`, 0 keeps the dimension of X at that
// place and one -1 takes what is left.
#include "core/op_def.h"
#include "kernels/util/copy.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kShape = 1;
constexpr int kShapeTensor = 2;
constexpr int kOut = 0;
constexpr int kXShape = 1;

struct ReshapeAttrs {
  IntList shape;
};

ReshapeAttrs ReadReshapeAttrs(AttrReader& reader) { return {ReadIntListAttr(reader, "shape")}; }

// A list of one-element tensors wins over the whole tensor, and that over the attribute.
absl::StatusOr<IntList> WantedDims(const OpContext& ctx) {
  const bool has_list = !ctx.inputs(kShapeTensor).empty();
  const IntSlots slots = {.name = "shape", .tensor = has_list ? -1 : kShape, .list = kShapeTensor};
  return ReadIntList(ctx, slots, ctx.attrs<ReshapeAttrs>().shape);
}

absl::StatusOr<Shape> Resolve(const Shape& x, const IntList& dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("shape has ", dims.size(), " dims, expected at most ", kMaxRank);
  }
  Shape shape(dims);
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0 && i < x.rank()) shape[i] = x[i];
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
    } else if (shape[i] < 0) {
      return InvalidArgument("shape is ", ToString(Shape(dims)),
                             ", expected dims of at least 0 and one -1 at most");
    } else {
      INTERP_ASSIGN_OR_RETURN(known, CheckedProduct(known, shape[i]));
    }
  }
  const int64_t count = x.numel();
  if (unknown >= 0) shape[unknown] = known == 0 ? 0 : count / known;
  if (shape.CheckedNumel() != count) {
    return InvalidArgument("'X' of shape ", ToString(x), " has ", count,
                           " elements, which do not fill shape ", ToString(Shape(dims)));
  }
  return shape;
}

absl::Status InferReshape(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const IntList dims, WantedDims(ctx));
  INTERP_ASSIGN_OR_RETURN(ctx.output(kOut).shape, Resolve(x.shape, dims));
  ShareLod(x, ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status InferReshape2(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferReshape(ctx));
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

absl::Status Reshape(KernelContext& ctx) {
  CopyUnlessShared(ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

OpDef ReshapeDef(absl::string_view type, std::vector<SlotDef> outputs,
                 absl::Status (*infer)(InferContext&), absl::string_view gradient_shape) {
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"Shape", kOptional | kAnyDType | kValueInInfer},
                 {"ShapeTensor", kOptional | kVariadic | kAnyDType | kValueInInfer}},
      .outputs = std::move(outputs),
      .parse = ParseAttrs<ReshapeAttrs, ReadReshapeAttrs>,
      .infer = infer,
      .kernels = {{DType::kUndefined, Reshape}},
      .view = {{kX, kOut}},
      .gradient = {.inputs = {gradient_shape, "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(ReshapeDef("reshape", {{"Out"}}, InferReshape, "X"));
INTERP_REGISTER_OP(ReshapeDef("reshape2", {{"Out"}, {"XShape", kOptional}}, InferReshape2,
                              "XShape"));

}  // namespace
}  // namespace interp
