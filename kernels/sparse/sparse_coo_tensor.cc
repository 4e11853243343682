// sparse_sparse_coo_tensor: a sparse tensor of `values` at `indices`, of attribute `shape`.
// sparse_values and sparse_indices give these again.
#include "kernels/sparse/parts.h"

namespace interp::sparse {
namespace {

absl::Status ExpandTensor(Expansion& ops) {
  const std::vector<int64_t> dims = ops.attrs().Ints("shape");
  const VarId shape = ops.Add("assign_value", {});
  ops.SetAttr("shape", std::vector<int32_t>{static_cast<int32_t>(dims.size())});
  ops.SetAttr("dtype", static_cast<int32_t>(DType::kInt64));
  ops.SetAttr("int64_values", dims);
  SetParts(ops, "out",
           {.values = ops.Input("values"), .indices = ops.Input("indices"), .shape = shape});
  return absl::OkStatus();
}

absl::Status ExpandValues(Expansion& ops) {
  ops.Set("out", InputParts(ops, "x").values);
  return absl::OkStatus();
}
absl::Status ExpandIndices(Expansion& ops) {
  ops.Set("out", InputParts(ops, "x").indices);
  return absl::OkStatus();
}

INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "sparse_sparse_coo_tensor",
                                       .inputs = {{"values"}, {"indices"}},
                                       .outputs = {{"out"}},
                                       .expand = ExpandTensor});
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "sparse_values", .inputs = {{"x"}}, .outputs = {{"out"}}, .expand = ExpandValues});
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "sparse_indices", .inputs = {{"x"}}, .outputs = {{"out"}}, .expand = ExpandIndices});

}  // namespace
}  // namespace interp::sparse
