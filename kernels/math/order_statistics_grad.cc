// kthvalue_grad, mode_grad: X@GRAD = Out@GRAD where the element was, 0 elsewhere.
// cummax_grad, cummin_grad: X@GRAD = the sum of Out@GRAD over all places that hold the element.

#include "core/op_def.h"
#include "kernels/math/chosen_grad.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kIndices = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

struct AxisAttrs {
  int64_t axis = -1;
};

AxisAttrs ReadAxisAttrs(AttrReader& reader) { return {reader.Long("axis", -1)}; }

// Indices has the elements of X but for those along the axis, of which there are one or all.
absl::Status InferChosenGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& indices = ctx.input(kIndices).shape;
  const int64_t axis = ctx.attrs<AxisAttrs>().axis;
  INTERP_RETURN_IF_ERROR(CheckAxis(axis, x, "X"));
  const Lines lines = LinesAlong(x, axis);
  if (indices.numel() != lines.count() && indices != x) {
    return InvalidArgument("the indices have shape ", ToString(indices), " for an input ",
                           ToString(x), " and axis ", axis);
  }
  const Shape& grad = ctx.input(kOutGrad).shape;
  if (grad.numel() != indices.numel()) {
    return InvalidArgument("the gradient has shape ", ToString(grad), ", expected ",
                           ToString(indices));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status ChosenGrad(KernelContext& ctx) {
  const Tensor& indices = ctx.input(kIndices);
  const Shape& shape = ctx.input(kX).shape;
  const Lines lines = LinesAlong(shape, ctx.attrs<AxisAttrs>().axis);
  const int64_t chosen = lines.count() == 0 ? 0 : indices.numel() / lines.count();
  const Lines kept = {lines.outer, chosen, lines.inner};
  return GiveToChosen<T>(indices, kept, ctx.input(kOutGrad), lines, ctx.num_threads(),
                         ctx.output(kXGrad));
}

OpDef ChosenGradDef(absl::string_view type, std::vector<SlotDef> inputs, absl::string_view x_grad) {
  return OpDef{
      .type = type,
      .inputs = std::move(inputs),
      .outputs = {{x_grad}},
      .parse = ParseAttrs<AxisAttrs, ReadAxisAttrs>,
      .infer = InferChosenGrad,
      .kernels = {{DType::kFloat32, ChosenGrad<float>}, {DType::kFloat64, ChosenGrad<double>}},
  };
}

OpDef StatisticGradDef(absl::string_view type) {
  return ChosenGradDef(type, {{"X", kNoNeedBuffer}, {"Indices", kAnyDType}, {"Out@GRAD"}},
                       "X@GRAD");
}

OpDef RunningGradDef(absl::string_view type) {
  return ChosenGradDef(type, {{"x", kNoNeedBuffer}, {"indices", kAnyDType}, {"out@GRAD"}},
                       "x@GRAD");
}

INTERP_REGISTER_OP(StatisticGradDef("kthvalue_grad"));
INTERP_REGISTER_OP(StatisticGradDef("mode_grad"));
INTERP_REGISTER_OP(RunningGradDef("cummax_grad"));
INTERP_REGISTER_OP(RunningGradDef("cummin_grad"));

}  // namespace
}  // namespace interp
