// interp info: what a program is and needs, without running it; what a record file holds.
#include <algorithm>
#include <initializer_list>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/annotate.h"
#include "core/base/json_writer.h"
#include "tools/commands.h"
#include "tools/device_info.h"
#include "tools/feeds.h"
#include "tools/flag_effects.h"
#include "tools/model.h"
#include "tools/program_info.h"
#include "tools/record_info.h"
#include "tools/repeated_flag.h"
#include "tools/shaped_run.h"
#include "tools/sizes.h"
#include "tools/table.h"

namespace interp {
namespace {

struct InfoFlags {
  ModelFlags model;
  FeedFlags feeds;
  bool records = false;
  bool devices = false;
  bool json = false;
};

// What is for the run of --shape and --feed.
constexpr std::initializer_list<const char*> kRunFlags = {"--shape", "--feed", "--feed-lod",
                                                          "--max-file-memory", "--seed"};

struct Info {
  ProgramInfo program;
  std::optional<ShapedRun> shaped;  // with --shape or --feed
};

uint64_t BytesOf(const ShapedVar& var) {
  const std::optional<int64_t> elements = var.shape.CheckedNumel();
  return elements.has_value() ? static_cast<uint64_t>(*elements) * SizeOf(var.dtype) : 0;
}

std::string Section(absl::string_view title, const std::vector<VarInfo>& vars) {
  std::string text = absl::StrCat(title, vars.empty() ? " none" : "", "\n");
  for (const VarInfo& var : vars) {
    absl::StrAppend(&text, "  ", var.name, "  ", DescribeVar(var.var), "\n");
  }
  return text;
}

// Memory over time in few lines: the most that is alive in each stretch of instructions.
std::string MemoryTable(const ShapedRun& run) {
  constexpr size_t kLines = 24;
  constexpr uint64_t kWidth = 40;
  const uint64_t most = std::max<uint64_t>(1, run.memory[run.peak_at].alive_bytes);
  std::vector<std::vector<std::string>> rows = {{"alive", "", "at"}};
  const size_t lines = std::min(kLines, run.memory.size());
  for (size_t line = 0; line < lines; ++line) {
    const auto begin = run.memory.begin() + static_cast<int64_t>(line * run.memory.size() / lines);
    const auto end =
        run.memory.begin() + static_cast<int64_t>((line + 1) * run.memory.size() / lines);
    const auto largest = std::max_element(
        begin, end,
        [](const MemoryPoint& a, const MemoryPoint& b) { return a.alive_bytes < b.alive_bytes; });
    const auto width = static_cast<uint64_t>(static_cast<double>(largest->alive_bytes) /
                                             static_cast<double>(most) * kWidth);
    rows.push_back({FormatBytes(largest->alive_bytes), std::string(width, '#'), largest->op});
  }
  return FormatTable(rows);
}

std::string ShapedText(const ShapedRun& run) {
  std::vector<std::vector<std::string>> vars = {{"variable", "dtype", "shape", "bytes", ""}};
  for (const ShapedVar& var : run.vars) {
    vars.push_back({var.name, std::string(Name(var.dtype)), ToString(var.shape),
                    absl::StrCat(BytesOf(var)), var.parameter ? "parameter" : ""});
  }
  std::string text = FormatTable(vars);
  if (run.memory.empty()) return text;
  absl::StrAppend(&text, "\nmemory over time, after the passes: peak ", FormatBytes(run.peak_bytes),
                  " with workspace of kernels, most alive at ", run.memory[run.peak_at].op, "\n",
                  MemoryTable(run));
  if (run.zero_parameters) {
    absl::StrAppend(&text, "parameters that were not loaded were taken as zero: sizes that depend ",
                    "on values may differ\n");
  }
  return text;
}

// As shells read it back: names in files may hold anything.
std::string ShellWord(absl::string_view text) {
  const bool plain = absl::c_all_of(
      text, [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("_./:=@%+,-", c); });
  if (plain && !text.empty()) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// A command line for a program that wants feeds.
std::string ExampleText(const ProgramInfo& info) {
  if (info.inputs.empty()) return "";
  std::string text = absl::StrCat("try    interp run ", ShellWord(info.path));
  for (const VarInfo& input : info.inputs) {
    std::vector<int64_t> dims;
    if (input.var != nullptr) dims = input.var->dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < 0) dims[i] = i < 2 ? 1 : 224;
    }
    absl::StrAppend(&text, " --feed ",
                    ShellWord(absl::StrCat(input.name, "=random:", absl::StrJoin(dims, "x"))));
  }
  return text + "\n";
}

std::string ToText(const Info& all) {
  const ProgramInfo& info = all.program;
  std::string text = absl::StrCat(
      info.path, ": Paddle ", info.version, ", ", Counted(info.num_blocks, "block"), ", ",
      Counted(info.num_ops, "op"), ", ", Counted(info.num_vars, "variable"), "\n");
  absl::StrAppend(&text, Section("inputs", info.inputs), Section("outputs", info.outputs));
  absl::StrAppend(&text, "parameters ", info.declared.count, ", ",
                  FormatBytes(info.declared.size_bytes), "\n");
  if (info.loaded.has_value()) {
    absl::StrAppend(&text, "loaded ", info.loaded->count, ", ",
                    FormatBytes(info.loaded->size_bytes), "\n");
  }
  absl::StrAppend(&text, "memory ", MemoryText(info), "\n", ExampleText(info));
  std::vector<std::vector<std::string>> ops = {{"count", "op"}};
  for (const auto& [type, count] : info.ops) ops.push_back({absl::StrCat(count), type});
  absl::StrAppend(&text, "unsupported ops ",
                  info.unsupported.empty() ? "none" : absl::StrJoin(info.unsupported, " "), "\n",
                  "\n", FormatTable(ops));
  if (all.shaped.has_value()) absl::StrAppend(&text, "\n", ShapedText(*all.shaped));
  return text;
}

void WriteVars(absl::string_view key, const std::vector<VarInfo>& vars, JsonWriter& json) {
  json.Objects(key, vars, [&](const VarInfo& info) {
    json.Field("name", info.name);
    if (info.var != nullptr) {
      json.Field("dtype", Name(info.var->dtype));
      json.Values("shape", info.var->dims);
    }
  });
}

void WriteTotals(absl::string_view key, const ParameterTotals& totals, JsonWriter& json) {
  json.Key(key);
  json.BeginObject();
  json.Field("count", totals.count);
  json.Field("bytes", totals.size_bytes);
  json.EndObject();
}

void WriteShaped(const ShapedRun& run, JsonWriter& json) {
  json.ObjectLines("shapes", run.vars, [&](const ShapedVar& var) {
    json.Field("name", var.name);
    json.Field("dtype", Name(var.dtype));
    json.Values("shape", var.shape);
    json.Field("bytes", BytesOf(var));
    json.Field("parameter", var.parameter);
  });
  json.ObjectLines("memory_over_time", run.memory, [&](const MemoryPoint& point) {
    json.Field("op", point.op);
    json.Field("alive_bytes", point.alive_bytes);
  });
  json.Field("peak_bytes", run.peak_bytes);
  if (!run.memory.empty()) json.Field("peak_at", run.memory[run.peak_at].op);
  json.Field("zero_parameters", run.zero_parameters);
}

std::string ToJson(const Info& all) {
  const ProgramInfo& info = all.program;
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
  json.Values("unsupported", info.unsupported);
  json.Key("ops");
  json.BeginObject();
  for (const auto& [type, count] : info.ops) json.Field(type, count);
  json.EndObject();
  if (all.shaped.has_value()) WriteShaped(*all.shaped, json);
  json.EndObject();
  return std::move(json).Take() + "\n";
}

// Names and shapes are the user's.
ExitCode BlameOf(const absl::Status& status) {
  const bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return usage ? ExitCode::kUsage : ExitCode::kRunFailed;
}

absl::StatusOr<ExitCode> ShowRecords(const InfoFlags& flags, const CLI::App& command) {
  for (const auto flags_of_programs :
       {kRunFlags, std::initializer_list<const char*>{"--params", "--compiled-from"}}) {
    INTERP_RETURN_IF_ERROR(CheckEffect(command, flags_of_programs, false, "on a record file"));
  }
  INTERP_ASSIGN_OR_RETURN(const RecordInfo info,
                          CollectRecordInfo(flags.model.model, flags.records));
  return Show(flags.json ? ToJson(info, flags.records) : ToText(info, flags.records),
              info.is_whole() ? ExitCode::kOk : ExitCode::kUsage);
}

absl::StatusOr<ExitCode> ShowDevices(const InfoFlags& flags, const CLI::App& command) {
  for (const auto flags_of_files :
       {std::initializer_list<const char*>{"MODEL", "--params", "--compiled-from", "--records"},
        kRunFlags}) {
    INTERP_RETURN_IF_ERROR(CheckEffect(command, flags_of_files, false, "with --devices"));
  }
  const std::vector<DeviceInfo> devices = FindDevicesHere();
  return Show(flags.json ? ToJson(devices) : ToText(devices));
}

// What can be said before the program is read.
absl::Status CheckInfoFlags(const InfoFlags& flags, const CLI::App& command) {
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command, {"--records"}, false, "but on a record file, which ends in .rec"));
  const bool runs = !flags.feeds.shapes.empty() || !flags.feeds.feeds.empty();
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--feed-lod", "--max-file-memory", "--seed"}, runs,
                                     "without --shape or --feed"));
  return MaxFileBytes(flags.feeds.limits).status();
}

absl::StatusOr<ExitCode> ShowProgram(const InfoFlags& flags, const CLI::App& command,
                                     ExitCode& blame) {
  INTERP_RETURN_IF_ERROR(CheckInfoFlags(flags, command));
  const bool runs = !flags.feeds.shapes.empty() || !flags.feeds.feeds.empty();
  ModelFlags model_flags = flags.model;
  model_flags.finds_params = runs;
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(model_flags));
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(CheckModelFlags(flags.model, model));
  Info info{CollectInfo(model, !flags.model.params.empty()), std::nullopt};
  if (runs) {
    if (model.compiled.has_value()) {
      return InvalidArgument(flags.feeds.shapes.empty() ? "--feed" : "--shape",
                             " wants a program; ", model.path,
                             " is a plan, whose variables are chosen");
    }
    absl::StatusOr<ShapedRun> shaped = RunWithShapes(model, flags.feeds);
    blame = BlameOf(shaped.status());
    INTERP_ASSIGN_OR_RETURN(info.shaped, Annotate(std::move(shaped), model.path));
  }
  return Show(flags.json ? ToJson(info) : ToText(info));
}

absl::StatusOr<ExitCode> ShowInfo(const InfoFlags& flags, const CLI::App& command,
                                  ExitCode& blame) {
  if (flags.devices) return ShowDevices(flags, command);
  if (flags.model.model.empty()) return InvalidArgument("MODEL is required");
  if (absl::EndsWith(flags.model.model, ".rec")) return ShowRecords(flags, command);
  return ShowProgram(flags, command, blame);
}

}  // namespace

void AddInfoCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App& command =
      *app.add_subcommand("info", "what a program is and needs, or what a record file holds");
  AddModelFlags(command, flags->model);
  command.get_option("MODEL")->required(false);  // but with --devices, see ShowInfo
  AddFeedFlags(command, flags->feeds);
  AddRepeatedFlag(command, "--shape", flags->feeds.shapes,
                  "of a feed, as in x=1x3x640x640: run the program on random feeds and show every "
                  "variable's shape and the memory over time; repeatable");
  command.add_flag("--devices", flags->devices,
                   "without MODEL: the GPUs that programs can run on, or why there is none");
  command.add_flag("--records", flags->records, "of FILE.rec: list every record");
  command.add_flag("--json", flags->json, "print one JSON object");
  command.callback([flags, &command, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return ShowInfo(*flags, command, blame); });
  });
}

}  // namespace interp
