#include "tools/shaped_run.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/algorithm/container.h"
#include "core/base/annotate.h"
#include "core/io/npy.h"
#include "interpreter/inspect/liveness_bound.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan/instruction_name.h"
#include "passes/feed_fetch.h"
#include "passes/import/array_ops.h"
#include "passes/import/expand_ops.h"
#include "passes/import/python_layers.h"
#include "passes/import/undefined_values.h"
#include "passes/import/variable_attributes.h"
#include "passes/pipeline.h"
#include "passes/prune.h"
#include "tools/core_flags.h"
#include "tools/feed_values.h"
#include "tools/feeds.h"
#include "tools/model.h"
#include "tools/names.h"

namespace interp {
namespace {

// The parameters without a value of which the program says the shape.
std::vector<const Var*> MissingParameters(const Program& program, Scope& scope) {
  std::vector<const Var*> missing;
  for (const Var& var : program.blocks[0].vars) {
    if (!var.persistable || var.kind != VarKind::kLodTensor || SizeOf(var.dtype) == 0) continue;
    if (scope.FindOrCreate(program.NameOf(var.id))->tensor.has_memory()) continue;
    if (std::any_of(var.dims.begin(), var.dims.end(), [](int64_t dim) { return dim < 0; }))
      continue;
    missing.push_back(&var);
  }
  return missing;
}

// Gives every parameter without a value zeros. True when there was one. ResourceExhausted, before
// anything is allocated, where a program declares more than a file may have.
absl::StatusOr<bool> AddZeroParameters(const Program& program, Scope& scope) {
  const std::vector<const Var*> missing = MissingParameters(program, scope);
  size_t left = kMaxArrayBytes;
  for (const Var* var : missing) {
    INTERP_RETURN_IF_ERROR(TakeDeclaredBytes(program.NameOf(var->id), *var,
                                             "the parameters without a value", "--params", left));
  }
  for (const Var* var : missing) {
    INTERP_ASSIGN_OR_RETURN(Tensor zeros,
                            Annotate(MakeFeed(var->dtype, var->dims), program.NameOf(var->id)));
    if (zeros.numel() > 0) std::memset(zeros.mutable_raw_data(), 0, zeros.size_bytes());
    scope.FindOrCreate(program.NameOf(var->id))->tensor = std::move(zeros);
  }
  return !missing.empty();
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> RunOnce(const Program& program,
                                                         const std::vector<NamedTensor>& feeds,
                                                         const std::shared_ptr<Scope>& scope,
                                                         const CoreOptions& options) {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const NamedTensor& feed : feeds) {
    names.push_back(feed.first);
    tensors.push_back(feed.second);
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<std::string> fetches, FetchNames(program, {}));
  INTERP_ASSIGN_OR_RETURN(auto core,
                          InterpreterCore::Create(program, names, fetches, scope, options));
  INTERP_RETURN_IF_ERROR(core->CheckFeeds(tensors));
  INTERP_RETURN_IF_ERROR(core->Run(tensors).status());
  return core;
}

// What leaves the program's variables as they are.
constexpr absl::string_view kKeepsVariables[] = {
    "insert_feed_fetch", kPythonLayersPass,    kExpandOpsPass, kVariableAttributesPass,
    kArrayOpsPass,       kUndefinedValuesPass, kPrunePass};

// All variables that somebody needs: passes drop some of them, or change what they hold.
absl::StatusOr<std::vector<ShapedVar>> FindShapes(const Program& program,
                                                  const std::vector<NamedTensor>& feeds,
                                                  const std::shared_ptr<Scope>& scope,
                                                  CoreOptions options) {
  for (const Pass& pass : AllPasses()) {
    if (pass.on_by_default &&
        absl::c_find(kKeepsVariables, pass.name) == std::end(kKeepsVariables)) {
      options.passes.disable.emplace_back(pass.name);
    }
  }
  options.plan.optimize_layout = false;
  INTERP_ASSIGN_OR_RETURN(const auto core, RunOnce(program, feeds, scope, options));
  std::vector<ShapedVar> vars;
  const absl::Span<Variable* const> values = core->variables();
  for (size_t i = 0; i < values.size(); ++i) {
    const PlanVar& var = core->plan().vars[i];
    if (var.program_var < 0 || var.kind != VarKind::kLodTensor || values[i] == nullptr) continue;
    const Tensor& tensor = values[i]->tensor;
    if (tensor.dtype == DType::kUndefined) continue;
    vars.push_back({var.name, tensor.dtype, tensor.shape, var.persistable});
  }
  return vars;
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> FeedsOfShapes(const Program& program,
                                                       const FeedFlags& flags) {
  INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> feeds, ReadFeeds(program, flags));
  INTERP_RETURN_IF_ERROR(AddRandomFeeds(program, flags.limits.seed, feeds));
  AddDefaultLods(program, feeds);
  return feeds;
}

absl::StatusOr<ShapedRun> RunWithShapes(Model& model, const FeedFlags& flags) {
  ShapedRun run;
  INTERP_ASSIGN_OR_RETURN(const std::vector<NamedTensor> feeds,
                          FeedsOfShapes(model.program, flags));
  INTERP_ASSIGN_OR_RETURN(run.zero_parameters, AddZeroParameters(model.program, *model.scope));
  INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> fetches, FetchVars(model.program));
  CoreOptions options;
  options.scheduler = SchedulerKind::kTrace;
  options.random_seed = flags.limits.seed;
  LimitToMachine({}, PlaceKind::kCpu, /*side_by_side=*/1, options);
  if (fetches.empty()) options.passes.disable.emplace_back(kPrunePass);  // would leave nothing
  INTERP_ASSIGN_OR_RETURN(run.vars, FindShapes(model.program, feeds, model.scope, options));
  INTERP_ASSIGN_OR_RETURN(const auto core, RunOnce(model.program, feeds, model.scope, options));
  const std::vector<uint64_t> alive = AliveBytesInOrder(*core);
  for (size_t at = 0; at < alive.size(); ++at) {
    run.memory.push_back({NameOf(core->plan().instructions[core->plan().order[at]]), alive[at]});
    if (alive[at] > alive[run.peak_at]) run.peak_at = at;
  }
  run.peak_bytes = core->memory().peak_bytes;
  return run;
}

}  // namespace interp
