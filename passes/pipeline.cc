#include "passes/pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "core/weight_scales.h"
#include "passes/fuse/fuse_activation.h"
#include "passes/fuse/fuse_attention.h"
#include "passes/fuse/fuse_batch_norm.h"
#include "passes/fuse/fuse_conv.h"
#include "passes/fuse/fuse_depthwise.h"
#include "passes/fuse/fuse_fc.h"
#include "passes/fuse/fuse_groups.h"
#include "passes/fuse/fuse_layer_norm.h"
#include "passes/fuse/fuse_shuffle.h"
#include "passes/fuse/fuse_where.h"
#include "passes/fuse/late_squeeze.h"
#include "passes/fuse/move_channels.h"
#include "passes/import/array_ops.h"
#include "passes/import/branch_dtypes.h"
#include "passes/import/coalesced_tensors.h"
#include "passes/import/detached_values.h"
#include "passes/import/expand_ops.h"
#include "passes/import/import_program.h"
#include "passes/import/python_layers.h"
#include "passes/import/undefined_values.h"
#include "passes/import/variable_attributes.h"
#include "passes/inplace.h"
#include "passes/insert_feed_fetch.h"
#include "passes/local_temporaries.h"
#include "passes/mixed_precision.h"
#include "passes/prune.h"
#include "passes/quant/fuse_quantizers.h"
#include "passes/quant/int8.h"
#include "passes/simplify.h"
#include "passes/train/addto.h"
#include "passes/verify.h"

namespace interp {
namespace {

constexpr Pass kPasses[] = {
    {"insert_feed_fetch", "give every fed and fetched variable its op", InsertFeedFetch},
    {kPythonLayersPass, "put the ops of Python layers in their place", InlinePythonLayers},
    {kExpandOpsPass, "put what ops are made of in their place", ExpandOps},
    {kVariableAttributesPass, "turn attributes that are variables into inputs",
     BindVariableAttributes},
    {"detached_values", "let what share_data hands on follow what is written later",
     FollowDetachedValues},
    {kUndefinedValuesPass, "give undefined values the dtype of what they are chosen against",
     TypeUndefinedValues},
    {kArrayOpsPass, "give ops on tensor arrays types of their own", NameArrayOps},
    {"branch_dtypes", "give values that branches make of several dtypes the widest",
     WidenBranchDTypes},
    {"coalesced_tensors", "keep tensors that coalesce_tensor has joined alike",
     KeepCoalescedTensorsAlike},
    {kLocalTemporariesPass, "let runs have what they write before they read it for themselves",
     LocalTemporaries, /*on_by_default=*/false},
    {kPrunePass, "drop ops that contribute to nothing anybody sees", Prune},
    {"simplify", "drop ops whose output equals their input", Simplify},
    {"int8", "compute in int8 what is quantised in training", ComputeInInt8,
     /*on_by_default=*/false},
    {"fuse_quantizers", "join ops that put values on a grid and bring them back", FuseQuantizers},
    {"fuse_where", "join what broadcasts the operands of a choice by element", FuseWhere},
    {"fuse_layer_norm", "join the pieces of a normalisation of the last dimension", FuseLayerNorm,
     /*on_by_default=*/true, /*hides_results=*/true},
    {"fuse_activation", "join the pieces of an activation", FuseActivation},
    {"late_squeeze", "keep sequences images between convolutions", LateSqueeze},
    {"fuse_groups", "join convolutions of the parts of an image", FuseGroups},
    {"fuse_conv", "join convolutions with bias, batch norm, sum and activation", FuseConv,
     /*on_by_default=*/true, /*hides_results=*/true},
    {"fuse_batch_norm", "join batch norms and the relu behind them", FuseBatchNorm,
     /*on_by_default=*/true, /*hides_results=*/true},
    {"fuse_fc", "join matrix products with bias and activation", FuseFc},
    {"fuse_shuffle", "join reshapes and the transpose between that shuffle channels", FuseShuffle},
    {"move_channels", "view images as rows of channels, and rows as images", MoveChannels},
    {"bf16", "compute products and what follows them in bfloat16", ComputeInBFloat16,
     /*on_by_default=*/false},
    {"fp16", "compute products and what follows them in float16", ComputeInFloat16,
     /*on_by_default=*/false},
    {"fuse_attention", "join two products and the softmax between them", FuseAttention,
     /*on_by_default=*/true, /*hides_results=*/true},
    {"fuse_depthwise", "join 1 x 1 convolutions with the depthwise ones that read them",
     FuseDepthwise, /*on_by_default=*/true, /*hides_results=*/true},
    {kAddToPass, "accumulate gradients as they are made", AddTo, /*on_by_default=*/false},
    {"inplace", "let outputs use the memory of inputs", MarkInplace},
};

#ifdef INTERP_VERIFY_PASSES
std::atomic<bool> verifies_passes{true};
#else
std::atomic<bool> verifies_passes{false};
#endif

constexpr absl::string_view kAllPasses = "all";

absl::Status CheckName(const std::vector<Pass>& passes, const std::string& name,
                       absl::string_view purpose) {
  const bool known = std::any_of(passes.begin(), passes.end(),
                                 [&](const Pass& pass) { return pass.name == name; });
  if (known) return absl::OkStatus();
  return NotFound("no pass named '", name, "' to ", purpose, "; passes are ",
                  absl::StrJoin(passes, ", ", [](std::string* out, const Pass& pass) {
                    absl::StrAppend(out, pass.name);
                  }));
}

absl::Status CheckNames(const std::vector<Pass>& passes, const std::vector<std::string>& names,
                        absl::string_view purpose, bool all_allowed) {
  for (const std::string& name : names) {
    if (all_allowed && name == kAllPasses) continue;
    INTERP_RETURN_IF_ERROR(CheckName(passes, name, purpose));
  }
  return absl::OkStatus();
}

// All passes there are, the caller's own among them, in the order they run in.
absl::StatusOr<std::vector<Pass>> WithExtra(const std::vector<ExtraPass>& extra) {
  std::vector<Pass> passes(std::begin(kPasses), std::end(kPasses));
  for (const ExtraPass& added : extra) {
    const auto named = [](absl::string_view name) {
      return [name](const Pass& pass) { return pass.name == name; };
    };
    if (std::any_of(passes.begin(), passes.end(), named(added.pass.name))) {
      return absl::AlreadyExistsError(
          absl::StrCat("there are two passes named '", added.pass.name, "'"));
    }
    if (!added.before.empty()) {
      INTERP_RETURN_IF_ERROR(
          CheckName(passes, added.before, absl::StrCat("put '", added.pass.name, "' before")));
    }
    passes.insert(std::find_if(passes.begin(), passes.end(), named(added.before)), added.pass);
  }
  return passes;
}

// What passes must keep, as far as it was so before.
struct Baseline {
  ComputedVars computed;  // see VerifyStillComputed
  bool columns = false;   // feed and fetch ops are in order
};

absl::Status VerifyAfterPass(const Program& program, const PassContext& context,
                             Baseline& baseline) {
  INTERP_RETURN_IF_ERROR(VerifyProgram(program, context.ops));
  const absl::Status columns = VerifyColumns(program);
  if (baseline.columns) INTERP_RETURN_IF_ERROR(columns);
  baseline.columns = columns.ok();
  return VerifyStillComputed(program, baseline.computed);
}

bool Verifies(const PipelineOptions& options) { return options.verify.value_or(VerifiesPasses()); }

// One pass with everything around it. What the pass itself reports is about the program or the
// names the user gave; what verification finds afterwards is a bug of the pass.
absl::Status RunPass(const Pass& pass, const PassContext& context, const PipelineOptions& options,
                     Baseline& baseline, PipelineResult& result) {
  const auto start = std::chrono::steady_clock::now();
  INTERP_ASSIGN_OR_RETURN(result.program, pass.function(std::move(result.program), context));
  const auto duration = std::chrono::steady_clock::now() - start;
  result.timings.push_back(
      {pass.name, std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count()});
  const bool print = absl::c_linear_search(options.print_after, pass.name) ||
                     absl::c_linear_search(options.print_after, kAllPasses);
  if (print && options.print) options.print(pass.name, result.program);
  if (!Verifies(options)) return absl::OkStatus();
  const absl::Status status = VerifyAfterPass(result.program, context, baseline);
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("pass '", pass.name, "' broke the program: ", status.message()));
}

}  // namespace

void KeepNoState(PipelineOptions& options) {
  for (const absl::string_view pass : {kLocalTemporariesPass, kPrunePass}) {
    if (absl::c_linear_search(options.disable, pass)) return;
  }
  if (absl::c_linear_search(options.enable, kLocalTemporariesPass)) return;
  options.enable.emplace_back(kLocalTemporariesPass);
}

bool VerifiesPasses() { return verifies_passes.load(std::memory_order_relaxed); }
void VerifyPasses(bool on) { verifies_passes.store(on, std::memory_order_relaxed); }

absl::Span<const Pass> AllPasses() { return kPasses; }

absl::StatusOr<std::vector<Pass>> DefaultPipeline(const PipelineOptions& options) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Pass> all, WithExtra(options.extra));
  INTERP_RETURN_IF_ERROR(CheckNames(all, options.disable, "disable", /*all_allowed=*/false));
  INTERP_RETURN_IF_ERROR(CheckNames(all, options.enable, "enable", /*all_allowed=*/false));
  INTERP_RETURN_IF_ERROR(CheckNames(all, options.print_after, "print after", /*all_allowed=*/true));
  std::vector<Pass> passes;
  for (const Pass& pass : all) {
    const bool on = pass.on_by_default || absl::c_linear_search(options.enable, pass.name);
    if (on && !absl::c_linear_search(options.disable, pass.name)) passes.push_back(pass);
  }
  return passes;
}

absl::StatusOr<PipelineResult> RunPipeline(Program program, const PassContext& context,
                                           const PipelineOptions& options) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Pass> passes, DefaultPipeline(options));
  PassContext with_options = context;
  with_options.float32_ops.insert(with_options.float32_ops.end(), options.float32_ops.begin(),
                                  options.float32_ops.end());
  INTERP_ASSIGN_OR_RETURN(PipelineResult result,
                          RunPasses(std::move(program), with_options, passes, options));
  INTERP_RETURN_IF_ERROR(VerifyOpsKnown(result.program, context.ops));
  return result;
}

absl::StatusOr<PipelineResult> RunPasses(Program program, const PassContext& context,
                                         absl::Span<const Pass> passes,
                                         const PipelineOptions& options) {
  INTERP_ASSIGN_OR_RETURN(program, ImportProgram(std::move(program), context));
  // Passes use ids as indices: what comes in is checked even when `verify` is off.
  INTERP_RETURN_IF_ERROR(VerifyProgram(program, context.ops));
  Baseline baseline;
  if (Verifies(options)) baseline = {FindComputedVars(program), VerifyColumns(program).ok()};
  const std::vector<WeightScaleAttr> scales = WeightScaleAttrsOf(program);
  PipelineResult result;
  result.program = std::move(program);
  for (const Pass& pass : passes) {
    INTERP_RETURN_IF_ERROR(RunPass(pass, context, options, baseline, result));
  }
  RestoreWeightScales(scales, result.program);
  return result;
}

}  // namespace interp
