// Gradients of argsort, top_k and top_k_v2: each element of Out@GRAD goes where Indices says that
// the element of Out came from; the rest of X@GRAD is 0.

#include "core/op_def.h"
#include "kernels/math/chosen_grad.h"
#include "kernels/math/sorting_attrs.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kIndices = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

SortedAxisAttrs ReadAxisAttrs(AttrReader& attrs) { return {attrs.Long("axis", -1)}; }
SortedAxisAttrs ReadNoAttrs(AttrReader&) { return {}; }

absl::Status InferSortingGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& indices = ctx.input(kIndices).shape;
  const int64_t attr_axis = ctx.attrs<SortedAxisAttrs>().axis;
  INTERP_RETURN_IF_ERROR(CheckAxis(attr_axis, x, "X"));
  const int axis = AxisOf(attr_axis, x);
  Shape expected = x;
  if (x.rank() > 0 && indices.rank() == x.rank()) expected[axis] = indices[axis];
  if (indices != expected) {
    return InvalidArgument("input 'Indices' has shape ", ToString(indices), " for 'X' ",
                           ToString(x));
  }
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", indices));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SortingGrad(KernelContext& ctx) {
  const Tensor& indices = ctx.input(kIndices);
  const Shape& shape = ctx.input(kX).shape;
  const int64_t axis = ctx.attrs<SortedAxisAttrs>().axis;
  const Lines lines = LinesAlong(shape, axis);
  const Lines kept = LinesAlong(indices.shape, axis);
  return GiveToChosen<T>(indices, kept, ctx.input(kOutGrad), lines, ctx.num_threads(),
                         ctx.output(kXGrad));
}

OpDef SortingGradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer}, {"Indices", kAnyDType}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD"}},
      .parse = ParseAttrs<SortedAxisAttrs, ReadAxisAttrs>,
      .infer = InferSortingGrad,
      .kernels = GradientRows([]<typename T>() -> KernelFn { return SortingGrad<T>; }),
  };
}

// With K, which the shape of Indices says as well.
OpDef TopKV2GradDef() {
  OpDef def = SortingGradDef("top_k_v2_grad");
  def.inputs.push_back({"K", kOptional | kAnyDType | kNoNeedBuffer});
  return def;
}

// Along the last dimension; it has no attributes.
OpDef TopKGradDef() {
  OpDef def = SortingGradDef("top_k_grad");
  def.parse = ParseAttrs<SortedAxisAttrs, ReadNoAttrs>;
  def.infer = WithoutLod<InferSortingGrad, kXGrad>;
  return def;
}

INTERP_REGISTER_OP(SortingGradDef("argsort_grad"));
INTERP_REGISTER_OP(TopKGradDef());
INTERP_REGISTER_OP(TopKV2GradDef());

}  // namespace
}  // namespace interp
