// reshape, reshape2: Out = X under another shape. In `shape`, 0 keeps the dimension of X at that
// place and one -1 takes what is left.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/fused_forms.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/view_shapes.h"

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

ReshapeAttrs ReadReshapeAttrs(AttrReader& reader) {
  RefuseFusedForms(reader);
  return {ReadIntListAttr(reader, "shape")};
}

// A list of one-element tensors wins over the whole tensor, and that over the attribute.
absl::StatusOr<IntList> WantedDims(const OpContext& ctx) {
  const bool has_list = !ctx.inputs(kShapeTensor).empty();
  const IntSlots slots = {.name = "shape", .tensor = has_list ? -1 : kShape, .list = kShapeTensor};
  return ReadIntList(ctx, slots, ctx.attrs<ReshapeAttrs>().shape);
}

absl::Status InferReshape(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const IntList dims, WantedDims(ctx));
  INTERP_ASSIGN_OR_RETURN(ctx.output(kOut).shape, Reshaped(x.shape, dims));
  ShareLod(x, ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status InferReshape2(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferReshape(ctx));
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

absl::Status Reshape(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
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
      .kernels = MoveKernels(Reshape),
      .view = {{kX, kOut}},
      .gradient = {.inputs = {gradient_shape, "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(ReshapeDef("reshape", {{"Out"}}, InferReshape, "X"));
INTERP_REGISTER_OP(ReshapeDef("reshape2", {{"Out"}, {"XShape", kOptional}}, InferReshape2,
                              "XShape"));

}  // namespace
}  // namespace interp
