// Ops that change the values of a sparse tensor alone, point by point: sparse_relu, and batch
// norms, whose channels are the last dimension.
#include <string>

#include "kernels/sparse/parts.h"

namespace interp::sparse {
namespace {

void SetValues(Expansion& ops, VarId values) {
  const Parts x = InputParts(ops, "x");
  SetParts(ops, "out", {.values = values, .indices = x.indices, .shape = x.shape});
}

absl::Status ExpandRelu(Expansion& ops) {
  SetValues(ops, ops.Add("relu", {{"X", InputParts(ops, "x").values}}));
  return absl::OkStatus();
}

absl::Status ExpandBatchNorm(Expansion& ops) {
  const VarId y = ops.Add("batch_norm",
                          {{"X", InputParts(ops, "x").values},
                           {"Scale", ops.Input("scale")},
                           {"Bias", ops.Input("bias")},
                           {"Mean", ops.Input("mean")},
                           {"Variance", ops.Input("variance")}},
                          "Y");
  if (y == Expansion::kAbsent) return absl::OkStatus();
  ops.SetAttr("data_layout", std::string("NCHW"));
  ops.Set("mean_out", ops.AlsoGives("MeanOut"));
  ops.Set("variance_out", ops.AlsoGives("VarianceOut"));
  ops.Set("saved_mean", ops.AlsoGives("SavedMean"));
  ops.Set("saved_variance", ops.AlsoGives("SavedVariance"));
  ops.LeaveOut("reserve_space");
  SetValues(ops, y);
  return absl::OkStatus();
}

ExpansionDef BatchNormDef(absl::string_view type) {
  return {.type = type,
          .inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"variance"}},
          .outputs = {{"out"},
                      {"mean_out"},
                      {"variance_out"},
                      {"saved_mean"},
                      {"saved_variance"},
                      {"reserve_space", kOptional}},
          .expand = ExpandBatchNorm};
}

INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "sparse_relu", .inputs = {{"x"}}, .outputs = {{"out"}}, .expand = ExpandRelu});
INTERP_REGISTER_EXPANSION(BatchNormDef("sparse_batch_norm"));
INTERP_REGISTER_EXPANSION(BatchNormDef("sparse_sync_batch_norm"));

}  // namespace
}  // namespace interp::sparse
