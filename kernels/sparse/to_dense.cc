// sparse_to_dense: the whole of a sparse tensor, 0 where there is no point. Of points at one place
// the last counts. coo_to_dense: the same of its parts.
#include <cstring>

#include "kernels/sparse/parts.h"
#include "kernels/util/fill_zero.h"

namespace interp::sparse {
namespace {

constexpr int kValues = 0;
constexpr int kIndices = 1;
constexpr int kShape = 2;
constexpr int kOut = 0;

absl::Status ExpandToDense(Expansion& ops) {
  const Parts x = InputParts(ops, "x");
  ops.Set("out", ops.Add("coo_to_dense",
                         {{"Values", x.values}, {"Indices", x.indices}, {"Shape", x.shape}}));
  return absl::OkStatus();
}
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "sparse_to_dense", .inputs = {{"x"}}, .outputs = {{"out"}}, .expand = ExpandToDense});

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(kShape)));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status ToDense(KernelContext& ctx) {
  const Tensor& values = ctx.input(kValues);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const Points points,
                          ReadPoints(values, ctx.input(kIndices), ctx.input(kShape)));
  FillZero(ctx.num_threads(), out);
  const size_t row_bytes = static_cast<size_t>(points.row()) * SizeOf(values.dtype);
  const auto* from = static_cast<const std::byte*>(values.raw_data());
  auto* const to = static_cast<std::byte*>(out.mutable_raw_data());
  if (row_bytes == 0) return absl::OkStatus();
  for (const int64_t key : points.keys) {
    std::memcpy(to + static_cast<size_t>(key) * row_bytes, from, row_bytes);
    from += row_bytes;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "coo_to_dense",
    .inputs = {{"Values"}, {"Indices", kAnyDType}, {"Shape", kValueInInfer | kAnyDType}},
    .outputs = {{"Out"}},
    .infer = Infer,
    .kernels = {{DType::kUndefined, ToDense}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::sparse
