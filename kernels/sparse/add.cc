// sparse_add: of a sparse tensor and a dense one, its values plus that; of two sparse tensors of
// one shape, the points of both, and where both have a point, the sum. Points stay in their order
// where both tensors have the same ones in the same order; else those of the sum are sorted.
// coo_add: the same of the parts of two.
#include <algorithm>

#include "kernels/sparse/parts.h"

namespace interp::sparse {
namespace {

constexpr int kX = 0;
constexpr int kXIndices = 1;
constexpr int kY = 2;
constexpr int kYIndices = 3;
constexpr int kShape = 4;
constexpr int kOut = 0;
constexpr int kOutIndices = 1;

absl::Status ExpandAdd(Expansion& ops) {
  const Parts x = InputParts(ops, "x");
  const Parts y = InputParts(ops, "y");
  if (y.values == Expansion::kAbsent) {
    const VarId sum = ops.Add("elementwise_add", {{"X", x.values}, {"Y", ops.Input("y")}});
    SetParts(ops, "out", {.values = sum, .indices = x.indices, .shape = x.shape});
    return absl::OkStatus();
  }
  const VarId sum = ops.Add("coo_add", {{"X", x.values},
                                        {"XIndices", x.indices},
                                        {"Y", y.values},
                                        {"YIndices", y.indices},
                                        {"Shape", x.shape}});
  if (sum == Expansion::kAbsent) return absl::OkStatus();
  SetParts(ops, "out", {.values = sum, .indices = ops.AlsoGives("OutIndices"), .shape = x.shape});
  return absl::OkStatus();
}
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "sparse_add", .inputs = {{"x"}, {"y"}}, .outputs = {{"out"}}, .expand = ExpandAdd});

// The places of the sum, each once.
std::vector<int64_t> Union(const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
  if (x == y) return x;
  std::vector<int64_t> keys = x;
  keys.insert(keys.end(), y.begin(), y.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

template <typename T>
void AddRows(const Points& points, const std::vector<int64_t>& keys, bool in_order, const T* from,
             T* to) {
  const int64_t row = points.row();
  for (size_t i = 0; i < points.keys.size(); ++i) {
    const auto at = in_order
                        ? static_cast<int64_t>(i)
                        : std::lower_bound(keys.begin(), keys.end(), points.keys[i]) - keys.begin();
    for (int64_t k = 0; k < row; ++k) to[at * row + k] += from[static_cast<int64_t>(i) * row + k];
  }
}

template <typename T>
absl::Status Add(KernelContext& ctx) {
  const Tensor& shape = ctx.input(kShape);
  INTERP_ASSIGN_OR_RETURN(const Points x, ReadPoints(ctx.input(kX), ctx.input(kXIndices), shape));
  INTERP_ASSIGN_OR_RETURN(const Points y, ReadPoints(ctx.input(kY), ctx.input(kYIndices), shape));
  if (x.sparse_dims != y.sparse_dims) {
    return InvalidArgument("the sparse tensors have ", x.sparse_dims, " and ", y.sparse_dims,
                           " dimensions of indices, expected one number");
  }
  const std::vector<int64_t> keys = Union(x.keys, y.keys);
  Tensor& out = ctx.output(kOut);
  Tensor& indices = ctx.output(kOutIndices);
  out.shape = ctx.input(kX).shape;
  out.shape[0] = std::ssize(keys);
  indices.shape = {x.sparse_dims, std::ssize(keys)};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  INTERP_RETURN_IF_ERROR(ctx.Allocate(indices));
  WriteIndices(keys, x.shape, indices);
  T* const sums = out.mutable_data<T>();
  std::fill_n(sums, out.numel(), T{0});
  const bool in_order = x.keys == y.keys;
  AddRows(x, keys, in_order, ctx.input(kX).data<T>(), sums);
  AddRows(y, keys, in_order, ctx.input(kY).data<T>(), sums);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "coo_add",
    .inputs =
        {{"X"}, {"XIndices", kAnyDType}, {"Y"}, {"YIndices", kAnyDType}, {"Shape", kAnyDType}},
    .outputs = {{"Out"}, {"OutIndices"}},
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOutIndices, ctx.input(kXIndices)); },
    .kernels = {{DType::kFloat32, Add<float>},
                {DType::kFloat64, Add<double>},
                {DType::kInt32, Add<int32_t>},
                {DType::kInt64, Add<int64_t>}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp::sparse
