#include "tools/program_info.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/plan/plan.h"
#include "passes/feed_fetch.h"
#include "passes/pipeline.h"
#include "passes/readers.h"
#include "tools/model.h"
#include "tools/sizes.h"

namespace interp {
namespace {

std::string VersionText(int64_t version) {
  if (version == 0) return "unknown";
  return absl::StrCat(version / 1'000'000, ".", version / 1000 % 1000, ".", version % 1000);
}

std::vector<VarInfo> FindVars(const Program& program,
                              const absl::StatusOr<std::vector<VarId>>& ids) {
  std::vector<VarInfo> vars;
  if (!ids.ok()) return vars;
  for (const VarId id : *ids) vars.push_back({program.NameOf(id), FindVar(program, id)});
  return vars;
}

std::vector<std::pair<std::string, int64_t>> CountOps(const Program& program) {
  std::map<std::string, int64_t> counts;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) ++counts[op.type];
  }
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

absl::StatusOr<MemoryEstimate> PlanMemory(const Model& model) {
  if (model.compiled.has_value()) return EstimateMemory(model.compiled->main(), model.program);
  const OpRegistry& ops = OpRegistry::Global();
  INTERP_ASSIGN_OR_RETURN(const PipelineResult passed, RunPipeline(model.program, {.ops = ops}));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Plan> plans, BuildPlans(passed.program, {}, ops));
  return EstimateMemory(plans[0], passed.program);
}

}  // namespace

ProgramInfo CollectInfo(const Model& model, bool with_params) {
  const Program& program = model.program;
  ProgramInfo info;
  info.path = model.path;
  info.version = VersionText(program.version);
  info.num_blocks = program.blocks.size();
  for (const Block& block : program.blocks) {
    info.num_vars += block.vars.size();
    info.num_ops += static_cast<int64_t>(block.ops.size());
  }
  info.inputs = FindVars(program, FeedVars(program));
  info.outputs = FindVars(program, FetchVars(program));
  info.declared = DeclaredParameters(program);
  if (with_params) info.loaded = model.loaded;
  info.ops = CountOps(program);
  Program fed = program;
  DropReaders(fed, ReadVars(program));
  info.unsupported = UnsupportedOps(fed, OpRegistry::Global());
  const absl::StatusOr<MemoryEstimate> memory = PlanMemory(model);
  if (memory.ok()) {
    info.memory = *memory;
  } else {
    info.problem = std::string(memory.status().message());
  }
  return info;
}

std::string MemoryText(const ProgramInfo& info) {
  if (!info.memory.has_value()) return absl::StrCat("cannot be run: ", info.problem);
  std::string text = absl::StrCat("about ", FormatBytes(info.memory->peak_bytes), " at once, ",
                                  FormatBytes(info.memory->total_bytes), " if nothing were freed");
  if (info.memory->num_unknown_shapes > 0) absl::StrAppend(&text, " (unknown dims taken as 1)");
  return text;
}

}  // namespace interp
