// squeeze, squeeze2: Out = X without the dimensions `axes` that have length 1; without `axes`, all
// such dimensions go. unsqueeze, unsqueeze2: Out = X with dimensions of length 1 inserted at
// `axes`, one after the other.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/view_shapes.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kXShape = 1;

struct AxesAttrs {
  IntList axes;
};

AxesAttrs ReadAxesAttrs(AttrReader& reader) { return {ReadIntListAttr(reader, "axes")}; }

// LoD describes rows, so it stays as long as these do.
void SetViewShape(InferContext& ctx, const Shape& shape) {
  const Tensor& x = ctx.input(kX);
  ctx.SetShape(kOut, shape);
  const bool same_rows = x.shape.rank() > 0 && shape.rank() > 0 && x.shape[0] == shape[0];
  if (same_rows) ctx.output(kOut).lod = x.lod;
}

constexpr int kAxesTensor = 1;
constexpr int kAxesTensorList = 2;

absl::StatusOr<IntList> AxesOf(const OpContext& ctx) {
  const bool has_list = !ctx.inputs(kAxesTensorList).empty();
  const IntSlots slots = {
      .name = "axes", .tensor = has_list ? -1 : kAxesTensor, .list = kAxesTensorList};
  return ReadIntList(ctx, slots, ctx.attrs<AxesAttrs>().axes);
}

absl::Status InferSqueeze(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList axes, AxesOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const Shape shape, Squeezed(ctx.input(kX).shape, axes));
  SetViewShape(ctx, shape);
  return absl::OkStatus();
}

absl::Status InferSqueeze2(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferSqueeze(ctx));
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

absl::Status InferUnsqueeze(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList axes, AxesOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const Shape shape, Unsqueezed(ctx.input(kX).shape, axes));
  SetViewShape(ctx, shape);
  return absl::OkStatus();
}

absl::Status InferUnsqueeze2(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferUnsqueeze(ctx));
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

absl::Status View(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
}

OpDef ViewDef(absl::string_view type, std::vector<SlotDef> inputs, std::vector<SlotDef> outputs,
              absl::Status (*infer)(InferContext&),
              std::vector<absl::string_view> gradient_inputs) {
  return OpDef{
      .type = type,
      .inputs = std::move(inputs),
      .outputs = std::move(outputs),
      .parse = ParseAttrs<AxesAttrs, ReadAxesAttrs>,
      .infer = infer,
      .kernels = MoveKernels(View),
      .view = {{kX, kOut}},
      .gradient = {.inputs = std::move(gradient_inputs), .outputs = {"X@GRAD"}},
  };
}

std::vector<SlotDef> Inputs() {
  return {{"X"},
          {"AxesTensor", kOptional | kAnyDType | kValueInInfer, "axes"},
          {"AxesTensorList", kOptional | kVariadic | kAnyDType | kValueInInfer, "axes"}};
}

INTERP_REGISTER_OP(ViewDef("squeeze", Inputs(), {{"Out"}}, InferSqueeze, {"X", "Out@GRAD"}));
INTERP_REGISTER_OP(ViewDef("squeeze2", Inputs(), {{"Out"}, {"XShape", kOptional}}, InferSqueeze2,
                           {"XShape", "Out@GRAD"}));
INTERP_REGISTER_OP(ViewDef("unsqueeze", Inputs(), {{"Out"}}, InferUnsqueeze,
                           {"X", "AxesTensor", "AxesTensorList", "Out@GRAD"}));
INTERP_REGISTER_OP(ViewDef("unsqueeze2", Inputs(), {{"Out"}, {"XShape", kOptional}},
                           InferUnsqueeze2,
                           {"XShape", "AxesTensor", "AxesTensorList", "Out@GRAD"}));

}  // namespace
}  // namespace interp
