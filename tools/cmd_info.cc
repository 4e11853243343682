// interp info: what a program is and needs, without running it.
#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/json_writer.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/inspect/memory_estimate.h"
#include "interpreter/plan/plan.h"
#include "passes/feed_fetch.h"
#include "passes/pipeline.h"
#include "passes/readers.h"
#include "tools/commands.h"
#include "tools/model.h"
#include "tools/sizes.h"
#include "tools/table.h"

namespace interp {
namespace {

struct Flags {
  ModelFlags model;
  bool json = false;
};

struct VarInfo {
  std::string name;
  const Var* var = nullptr;  // the declaration; null when there is none
};

struct Info {
  std::string path;
  std::string version;
  size_t num_blocks = 0;
  size_t num_vars = 0;
  int64_t num_ops = 0;
  std::vector<VarInfo> inputs;
  std::vector<VarInfo> outputs;
  ParameterTotals declared;
  std::optional<ParameterTotals> loaded;
  std::vector<std::pair<std::string, int64_t>> ops;  // most frequent first
  std::vector<std::string> unsupported;
  std::optional<MemoryEstimate> memory;  // nullopt: no plan can be made
  std::string problem;                   // why not
};

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

// The result points into `model`.
Info Collect(const Model& model, bool with_params) {
  const Program& program = model.program;
  Info info;
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

std::string Section(absl::string_view title, const std::vector<VarInfo>& vars) {
  std::string text = absl::StrCat(title, vars.empty() ? " none" : "", "\n");
  for (const VarInfo& var : vars) {
    absl::StrAppend(&text, "  ", var.name, "  ", DescribeVar(var.var), "\n");
  }
  return text;
}

std::string MemoryText(const Info& info) {
  if (!info.memory.has_value()) return absl::StrCat("cannot be run: ", info.problem);
  std::string text = absl::StrCat("about ", FormatBytes(info.memory->peak_bytes), " at once, ",
                                  FormatBytes(info.memory->total_bytes), " if nothing were freed");
  if (info.memory->num_unknown_shapes > 0) absl::StrAppend(&text, " (unknown dims taken as 1)");
  return text;
}

std::string ToText(const Info& info) {
  std::string text = absl::StrFormat("%s: Paddle %s, %d block%s, %d ops, %d variables\n", info.path,
                                     info.version, info.num_blocks, info.num_blocks == 1 ? "" : "s",
                                     info.num_ops, info.num_vars);
  absl::StrAppend(&text, Section("inputs", info.inputs), Section("outputs", info.outputs));
  absl::StrAppend(&text, "parameters ", info.declared.count, ", ",
                  FormatBytes(info.declared.size_bytes), "\n");
  if (info.loaded.has_value()) {
    absl::StrAppend(&text, "loaded ", info.loaded->count, ", ",
                    FormatBytes(info.loaded->size_bytes), "\n");
  }
  absl::StrAppend(&text, "memory ", MemoryText(info), "\n");
  std::vector<std::vector<std::string>> ops = {{"count", "op"}};
  for (const auto& [type, count] : info.ops) ops.push_back({absl::StrCat(count), type});
  absl::StrAppend(&text, "unsupported ops ",
                  info.unsupported.empty() ? "none" : absl::StrJoin(info.unsupported, " "), "\n",
                  "\n", FormatTable(ops));
  return text;
}

void WriteVars(absl::string_view key, const std::vector<VarInfo>& vars, JsonWriter& json) {
  json.Key(key);
  json.BeginArray();
  for (const VarInfo& info : vars) {
    json.BeginObject();
    json.Field("name", info.name);
    if (info.var != nullptr) {
      json.Field("dtype", Name(info.var->dtype));
      json.Key("shape");
      json.BeginArray();
      for (const int64_t dim : info.var->dims) json.Value(dim);
      json.EndArray();
    }
    json.EndObject();
  }
  json.EndArray();
}

void WriteTotals(absl::string_view key, const ParameterTotals& totals, JsonWriter& json) {
  json.Key(key);
  json.BeginObject();
  json.Field("count", totals.count);
  json.Field("bytes", totals.size_bytes);
  json.EndObject();
}

std::string ToJson(const Info& info) {
  JsonWriter json;
  json.BeginObject();
  json.Field("model", info.path);
  json.Field("version", info.version);
  json.Field("blocks", info.num_blocks);
  json.Field("variables", info.num_vars);
  json.Field("num_ops", info.num_ops);
  WriteVars("inputs", info.inputs, json);
  WriteVars("outputs", info.outputs, json);
  WriteTotals("parameters", info.declared, json);
  if (info.loaded.has_value()) WriteTotals("loaded", *info.loaded, json);
  if (info.memory.has_value()) {
    json.Field("estimated_peak_bytes", info.memory->peak_bytes);
    json.Field("estimated_total_bytes", info.memory->total_bytes);
    json.Field("unknown_shapes", info.memory->num_unknown_shapes);
  } else {
    json.Field("problem", info.problem);
  }
  json.Key("unsupported");
  json.BeginArray();
  for (const std::string& type : info.unsupported) json.Value(type);
  json.EndArray();
  json.Key("ops");
  json.BeginObject();
  for (const auto& [type, count] : info.ops) json.Field(type, count);
  json.EndObject();
  json.EndObject();
  return std::move(json).Take() + "\n";
}

ExitCode ShowInfo(const Flags& flags) {
  absl::StatusOr<Model> model = LoadModel(flags.model);
  if (!model.ok()) return Fail(ExitCode::kModelUnusable, model.status());
  const absl::Status suits = CheckModelFlags(flags.model, *model);
  if (!suits.ok()) return Fail(ExitCode::kUsage, suits);
  const Info info = Collect(*model, !flags.model.params.empty());
  return Show(flags.json ? ToJson(info) : ToText(info));
}

}  // namespace

void AddInfoCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *app.add_subcommand("info", "what a program is and needs");
  AddModelFlags(command, flags->model);
  command.add_flag("--json", flags->json, "print one JSON object");
  command.callback([flags, &exit_code] { exit_code = ShowInfo(*flags); });
}

}  // namespace interp
