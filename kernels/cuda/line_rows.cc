// Rows of ops that work on each line of a tensor by itself: positions of extremes, running sums,
// sorting and its gradients.

#include "kernels/cuda/arg_extreme.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/running_sum.h"
#include "kernels/cuda/sort.h"
#include "kernels/math/arg_extreme.h"
#include "kernels/math/cumsum.h"
#include "kernels/math/sorting_attrs.h"

namespace interp::cuda {
namespace {

LineShape ShapeOf(const Lines& lines) { return {lines.outer, lines.length, lines.inner}; }

// X, AxisTensor -> Out.
template <bool kLargest>
absl::Status Position(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int axis, ArgAxis(ctx));
  const Tensor& x = ctx.input(kArgX);
  Tensor& out = ctx.output(kArgOut);
  return ArgExtreme(x.dtype,
                    {.x = x.raw_data(),
                     .lines = ShapeOf(ArgLines(ctx.attrs<ArgAttrs>(), x.shape, axis)),
                     .largest = kLargest,
                     .index_dtype = out.dtype,
                     .out = out.mutable_raw_data()},
                    StreamOf(ctx));
}

absl::Status SumAlong(KernelContext& ctx, const CumSumAttrs& attrs, const Shape& shape,
                      const Tensor& x, Tensor& out) {
  return RunningSum(x.dtype,
                    {.x = x.raw_data(),
                     .out = out.mutable_raw_data(),
                     .lines = ShapeOf(CumSumLines(attrs, shape)),
                     .exclusive = IsExclusive(attrs, shape),
                     .reverse = attrs.reverse},
                    StreamOf(ctx));
}

// X, AxisTensor -> Out.
absl::Status CumSum(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const CumSumAttrs attrs, CumSumAttrsOf(ctx, /*axis_tensor=*/1));
  const Tensor& x = ctx.input(/*slot=*/0);
  return SumAlong(ctx, attrs, x.shape, x, ctx.output(/*slot=*/0));
}

// X, Out@GRAD, AxisTensor -> X@GRAD.
absl::Status CumSumGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(CumSumAttrs attrs, CumSumAttrsOf(ctx, /*axis_tensor=*/2));
  attrs.reverse = !attrs.reverse;
  return SumAlong(ctx, attrs, ctx.input(/*slot=*/0).shape, ctx.input(/*slot=*/1),
                  ctx.output(/*slot=*/0));
}

Lines LinesOfAxis(const Shape& shape, int64_t axis) { return LinesAlong(shape, axis); }

// X -> Out, Indices: the first elements of each line in its order.
absl::Status SortInto(KernelContext& ctx, int64_t axis, bool descending) {
  const Tensor& x = ctx.input(/*slot=*/0);
  Tensor& out = ctx.output(/*slot=*/0);
  return Sort(x.dtype,
              {.x = x.raw_data(),
               .lines = ShapeOf(LinesOfAxis(x.shape, axis)),
               .keep = LinesOfAxis(out.shape, axis).length,
               .descending = descending,
               .values = out.mutable_raw_data(),
               .indices = ctx.output(/*slot=*/1).mutable_data<int64_t>()},
              WorkspaceOf(ctx), StreamOf(ctx));
}

absl::Status ArgSort(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ArgSortAttrs>();
  return SortInto(ctx, attrs.axis, attrs.descending);
}

// Sorted, whether asked for or not: what a selection of the host leaves in its order has none.
absl::Status TopK(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<TopKAttrs>();
  return SortInto(ctx, attrs.axis, attrs.largest);
}

// X, Indices, Out@GRAD -> X@GRAD.
absl::Status SortingGrad(KernelContext& ctx) {
  const int64_t axis = ctx.attrs<SortedAxisAttrs>().axis;
  const Tensor& indices = ctx.input(/*slot=*/1);
  Tensor& x_grad = ctx.output(/*slot=*/0);
  return ScatterToLines({.updates = ctx.input(/*slot=*/2).raw_data(),
                         .element_bytes = static_cast<int>(SizeOf(x_grad.dtype)),
                         .indices = indices.raw_data(),
                         .index_dtype = indices.dtype,
                         .kept = ShapeOf(LinesOfAxis(indices.shape, axis)),
                         .length = LinesOfAxis(x_grad.shape, axis).length,
                         .out = x_grad.mutable_raw_data()},
                        StreamOf(ctx));
}

constexpr std::initializer_list<DType> kSearched = {
    DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32,
    DType::kInt64,   DType::kInt16,   DType::kUInt8};
constexpr std::initializer_list<DType> kOrdered = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                                                   DType::kInt64};
constexpr std::initializer_list<DType> kOrderedFloats = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("arg_max", RowsFor(kSearched, Position<true>));
INTERP_REGISTER_KERNELS("arg_min", RowsFor(kSearched, Position<false>));
INTERP_REGISTER_KERNELS("cumsum", RowsFor(kOrdered, CumSum));
INTERP_REGISTER_KERNELS("cumsum_grad", RowsFor(kOrderedFloats, CumSumGrad));
INTERP_REGISTER_KERNELS("argsort", RowsFor(kOrdered, ArgSort));
INTERP_REGISTER_KERNELS("top_k", RowsFor(kOrderedFloats, TopK));
INTERP_REGISTER_KERNELS("top_k_v2", RowsFor(kOrdered, TopK));
INTERP_REGISTER_KERNELS("argsort_grad", RowsFor(kOrderedFloats, SortingGrad));
INTERP_REGISTER_KERNELS("top_k_grad", RowsFor(kOrderedFloats, SortingGrad));
INTERP_REGISTER_KERNELS("top_k_v2_grad", RowsFor(kOrderedFloats, SortingGrad));

}  // namespace
}  // namespace interp::cuda
