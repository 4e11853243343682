// argsort: Out = X sorted along `axis`, Indices = where the elements were.

#include "kernels/math/sorting.h"
#include "kernels/math/sorting_attrs.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kIndices = 1;

ArgSortAttrs ReadArgSortAttrs(AttrReader& attrs) {
  return {attrs.Long("axis", -1), attrs.Bool("descending", false)};
}

absl::Status InferArgSort(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckAxis(ctx.attrs<ArgSortAttrs>().axis, x, "X"));
  ctx.ShareShape(kX, kOut);
  ctx.ShareShape(kX, kIndices);
  return absl::OkStatus();
}

template <typename T>
absl::Status ArgSort(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const ArgSortAttrs& attrs = ctx.attrs<ArgSortAttrs>();
  const Lines lines = LinesAlong(x.shape, attrs.axis);
  T* values = ctx.output(kOut).mutable_data<T>();
  int64_t* indices = ctx.output(kIndices).mutable_data<int64_t>();
  const auto sort = [descending = attrs.descending](Ranked<T>* first, Ranked<T>* last) {
    if (descending) return std::sort(first, last, RankedBefore<T, true>());
    std::sort(first, last, RankedBefore<T, false>());
  };
  return SortLines(ctx, x.data<T>(), lines, lines.length, values, indices, sort);
}

INTERP_REGISTER_OP(OpDef{
    .type = "argsort",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"Indices"}},
    .parse = ParseAttrs<ArgSortAttrs, ReadArgSortAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kIndices, DType::kInt64); },
    .infer = InferArgSort,
    .kernels = {{DType::kFloat32, ArgSort<float>},
                {DType::kFloat64, ArgSort<double>},
                {DType::kInt32, ArgSort<int32_t>},
                {DType::kInt64, ArgSort<int64_t>}},
    .gradient = {.inputs = {"X", "Indices", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
