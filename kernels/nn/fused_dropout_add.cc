// fused_dropout_add: out = dropout(x) + y. fused_bias_dropout_residual_layer_norm: Y is the norm of
// the rows of dropout(X + Bias) + Residual, [batch, length, width]. Both are made of other ops.
#include <string>
#include <vector>

#include "core/expansion.h"

namespace interp::nn::dropout_add {
namespace {

// Adds dropout(x) with the probability in attribute `probability` of the op.
VarId AddDropout(Expansion& ops, VarId x, absl::string_view probability, bool upscale,
                 absl::string_view fix_seed, absl::string_view seed) {
  const VarId out = ops.Add("dropout", {{"X", x}});
  if (out == Expansion::kAbsent) return out;
  ops.SetAttr("dropout_prob", ops.attrs().Float(probability, 0.5F));
  ops.SetAttr("dropout_implementation",
              std::string(upscale ? "upscale_in_train" : "downgrade_in_infer"));
  ops.SetAttr("fix_seed", ops.attrs().Bool(fix_seed, false));
  ops.SetAttr("seed", static_cast<int32_t>(ops.attrs().Int(seed, 0)));
  return out;
}

absl::Status ExpandDropoutAdd(Expansion& ops) {
  const bool upscale = ops.attrs().String("mode", "") != "downgrade_in_infer";
  const VarId dropped = AddDropout(ops, ops.Input("x"), "p", upscale, "fix_seed", "seed");
  if (dropped == Expansion::kAbsent) return InvalidArgument("input 'x' is missing");
  ops.AlsoTakes("ProbabilityTensor", {ops.Input("PTensor")});
  ops.AlsoTakes("Seed", {ops.Input("seed_tensor")});
  ops.Set("out", ops.Add("elementwise_add", {{"X", dropped}, {"Y", ops.Input("y")}}));
  ops.LeaveOut("seed_offset");
  return absl::OkStatus();
}

VarId Flat(Expansion& ops, VarId x) {
  const VarId flat = ops.Add("reshape", {{"X", x}});
  ops.SetAttr("shape", std::vector<int32_t>{-1});
  return flat;
}

absl::Status ExpandLayerNorm(Expansion& ops) {
  VarId x = ops.Input("X");
  if (const VarId bias = ops.Input("Bias"); bias != Expansion::kAbsent) {
    x = ops.Add("elementwise_add", {{"X", x}, {"Y", bias}});
  }
  const bool upscale =
      ops.attrs().String("dropout_implementation", "downgrade_in_infer") == "upscale_in_train";
  const VarId dropped =
      AddDropout(ops, x, "dropout_rate", upscale, "dropout_fix_seed", "dropout_seed");
  const VarId sum = ops.Add("elementwise_add", {{"X", dropped}, {"Y", ops.Input("Residual")}});
  const VarId y = ops.Add("layer_norm", {{"X", sum}}, "Y");
  if (y == Expansion::kAbsent) return InvalidArgument("inputs 'X' and 'Residual' are needed");
  ops.SetAttr("begin_norm_axis", int32_t{2});
  ops.SetAttr("epsilon", ops.attrs().Float("ln_epsilon", 1e-5F));
  ops.AlsoTakes("Scale", {ops.Input("LnScale")});
  ops.AlsoTakes("Bias", {ops.Input("LnBias")});
  const VarId mean = ops.AlsoGives("Mean");
  const VarId variance = ops.AlsoGives("Variance");
  ops.Set("LnMean", Flat(ops, mean));
  ops.Set("LnVariance", Flat(ops, variance));
  ops.Set("Y", y);
  ops.Set("BiasDropoutResidualOut", sum);
  ops.LeaveOut("DropoutMaskOut");
  return absl::OkStatus();
}

INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "fused_dropout_add",
    .inputs = {{"x"}, {"y"}, {"seed_tensor", kOptional}, {"PTensor", kOptional}},
    .outputs = {{"out"}, {"seed_offset", kOptional}},
    .expand = ExpandDropoutAdd});
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "fused_bias_dropout_residual_layer_norm",
    .inputs =
        {{"X"}, {"Residual"}, {"Bias", kOptional}, {"LnScale", kOptional}, {"LnBias", kOptional}},
    .outputs = {{"Y"},
                {"BiasDropoutResidualOut", kOptional},
                {"DropoutMaskOut", kOptional},
                {"LnMean", kOptional},
                {"LnVariance", kOptional}},
    .expand = ExpandLayerNorm});

}  // namespace
}  // namespace interp::nn::dropout_add
