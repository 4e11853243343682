#include "kernels/math/binary.h"

#include "absl/algorithm/container.h"
#include "kernels/complex/promotion.h"
#include "kernels/util/flops.h"
#include "kernels/util/fused_forms.h"

namespace interp {
namespace {

using binary::kOut;
using binary::kX;
using binary::kY;

OpDef BinaryDef(absl::string_view type, std::vector<KernelDef> kernels) {
  return OpDef{.type = type,
               .inputs = {{"X"}, {"Y"}},
               .outputs = {{"Out"}},
               .infer = InferBinary,
               .kernels = std::move(kernels),
               .layout = LayoutRule::kFollows};
}

}  // namespace

BinaryAttrs ReadBinaryAttrs(AttrReader& attrs) {
  RefuseFusedForms(attrs);
  return {.axis = attrs.Int("axis", kTrailingAxis)};
}

absl::Status InferBinary(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Shape shape,
      BroadcastShapes(ctx.input(kX).shape, ctx.input(kY).shape, ctx.attrs<BinaryAttrs>().axis));
  ctx.ShareShape(kX, kOut);
  ctx.output(kOut).shape = shape;
  return absl::OkStatus();
}

GradientDef BinaryGradient() {
  return {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}};
}

OpDef ArithmeticDef(absl::string_view type, std::vector<KernelDef> kernels, GradientDef gradient) {
  const bool complex =
      absl::c_any_of(kernels, [](const KernelDef& row) { return IsComplex(row.dtype); });
  OpDef def = BinaryDef(type, std::move(kernels));
  if (complex) def.kernel_dtype = PromotedDType<kX, kY>;
  def.gradient = std::move(gradient);
  def.parse = ParseAttrs<BinaryAttrs, ReadBinaryAttrs>;
  def.inplace = {{kX, kOut}, {kY, kOut}};
  def.flops = FlopsPerElement<1>;
  return def;
}

OpDef PredicateDef(absl::string_view type, std::vector<KernelDef> kernels) {
  OpDef def = BinaryDef(type, std::move(kernels));
  def.parse = ParseAttrs<BinaryAttrs, ReadBinaryAttrs>;
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, DType::kBool); };
  def.gradient = {.none = true};
  return def;
}

absl::Status PrepareOperands(KernelContext& ctx, BinaryOperands& operands) {
  const int axis = ctx.attrs<BinaryAttrs>().axis;
  const Tensor& out = ctx.output(kOut);
  operands.x = &ctx.input(kX);
  operands.y = &ctx.input(kY);
  operands.plan = PlanBroadcast(*operands.x, *operands.y, out, axis);
  const auto clashes = [&](const Tensor& operand, int64_t Loop::*step) {
    return operand.raw_data() == out.raw_data() && !InOutputOrder(operands.plan, step);
  };
  // At most one operand can: the other one has the order of the output.
  const Tensor*& clashing = clashes(*operands.x, &Loop::x_step) ? operands.x : operands.y;
  if (clashing == operands.y && !clashes(*operands.y, &Loop::y_step)) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(operands.copy, clashing->Clone(ctx.allocator()));
  clashing = &operands.copy;
  operands.plan = PlanBroadcast(*operands.x, *operands.y, out, axis);
  return absl::OkStatus();
}

}  // namespace interp
