// interp passes: lists the passes, and what each makes of a program.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/json_writer.h"
#include "passes/pipeline.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/repeated_flag.h"
#include "tools/table.h"

namespace interp {
namespace {

struct PassesFlags {
  std::string model;
  std::vector<std::string> fetches;
  std::vector<std::string> enable;
  std::vector<std::string> disable;
  bool json = false;
};

// What one pass did to a program.
struct Effect {
  int64_t ops_before = 0;
  int64_t ops_after = 0;
  int64_t duration_ns = 0;
};

struct PassRow {
  const Pass* pass = nullptr;
  std::optional<Effect> effect = std::nullopt;  // nullopt: did not run
};

int64_t NumOps(const Program& program) {
  int64_t count = 0;
  for (const Block& block : program.blocks) count += std::ssize(block.ops);
  return count;
}

std::vector<PassRow> AllRows() {
  std::vector<PassRow> rows;
  for (const Pass& pass : AllPasses()) rows.push_back({&pass});
  return rows;
}

// Runs the pipeline on the program, in the order of `rows`.
absl::Status Measure(const PassesFlags& flags, Program program, std::vector<PassRow>& rows) {
  PassContext context{.ops = OpRegistry::Global()};
  if (!flags.fetches.empty()) {
    INTERP_ASSIGN_OR_RETURN(context.fetches, FetchNames(program, flags.fetches));
  }
  int64_t ops = NumOps(program);
  std::vector<std::pair<int64_t, int64_t>> counts;
  PipelineOptions options{.disable = flags.disable,
                          .enable = flags.enable,
                          .print_after = {"all"},
                          .print = [&](absl::string_view /*pass*/, const Program& now) {
                            counts.emplace_back(ops, NumOps(now));
                            ops = counts.back().second;
                          }};
  KeepNoState(options);
  INTERP_ASSIGN_OR_RETURN(const PipelineResult result,
                          RunPipeline(std::move(program), context, options));
  size_t next = 0;
  for (PassRow& row : rows) {
    if (next == result.timings.size() || result.timings[next].pass != row.pass->name) continue;
    const auto [before, after] = counts[next];
    row.effect = Effect{before, after, result.timings[next].duration_ns};
    ++next;
  }
  return absl::OkStatus();
}

std::string ToText(const std::vector<PassRow>& rows, bool measured) {
  std::vector<std::vector<std::string>> table = {{"pass", "on"}};
  if (measured) table[0].insert(table[0].end(), {"ops", "change", "ms"});
  table[0].emplace_back("does");
  for (const PassRow& row : rows) {
    std::vector<std::string>& cells =
        table.emplace_back(std::vector<std::string>{std::string(row.pass->name)});
    const bool on = measured ? row.effect.has_value() : row.pass->on_by_default;
    cells.emplace_back(on ? "yes" : "");
    if (measured && row.effect.has_value()) {
      const int64_t change = row.effect->ops_after - row.effect->ops_before;
      cells.push_back(absl::StrCat(row.effect->ops_after));
      cells.push_back(change == 0 ? "" : absl::StrFormat("%+d", change));
      cells.push_back(absl::StrFormat("%.3f", static_cast<double>(row.effect->duration_ns) / 1e6));
    } else if (measured) {
      cells.insert(cells.end(), 3, "");
    }
    cells.emplace_back(row.pass->summary);
  }
  return FormatTable(table);
}

std::string ToJson(const std::vector<PassRow>& rows) {
  JsonWriter json;
  json.BeginArray();
  for (const PassRow& row : rows) {
    json.Line();
    json.BeginObject();
    json.Field("name", row.pass->name);
    json.Field("on_by_default", row.pass->on_by_default);
    json.Field("hides_results", row.pass->hides_results);
    json.Field("summary", row.pass->summary);
    if (row.effect.has_value()) {
      json.Field("ops_before", row.effect->ops_before);
      json.Field("ops_after", row.effect->ops_after);
      json.Field("ms", static_cast<double>(row.effect->duration_ns) / 1e6);
    }
    json.EndObject();
  }
  json.EndArray();
  return std::move(json).Take() + "\n";
}

absl::StatusOr<ExitCode> Passes(const PassesFlags& flags, ExitCode& blame) {
  std::vector<PassRow> rows = AllRows();
  const bool measured = !flags.model.empty();
  INTERP_RETURN_IF_ERROR(CheckPasses(flags.enable, flags.disable));
  if (measured) {
    blame = ExitCode::kModelUnusable;
    INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(flags.model, /*params=*/""));
    if (model.compiled.has_value()) {
      blame = ExitCode::kUsage;
      return InvalidArgument(model.path, ": the passes of a plan have run; expected a program");
    }
    const absl::Status status = Measure(flags, std::move(model.program), rows);
    if (absl::IsNotFound(status)) blame = ExitCode::kUsage;
    INTERP_RETURN_IF_ERROR(Annotate(status, model.path));
  }
  return Show(flags.json ? ToJson(rows) : ToText(rows, measured));
}

}  // namespace

void AddPassesCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<PassesFlags>();
  CLI::App& command =
      *app.add_subcommand("passes", "list the passes in their order, and what each makes of MODEL");
  CLI::Option* const model =
      command.add_option("MODEL", flags->model, "a program; without it passes are listed alone");
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch; default: what the program fetches")
      .needs(model);
  AddRepeatedFlag(command, "--enable-pass", flags->enable, "run this pass, too; repeatable")
      .needs(model);
  AddRepeatedFlag(command, "--disable-pass", flags->disable, "leave this pass out; repeatable")
      .needs(model);
  command.add_flag("--json", flags->json, "print one JSON array");
  command.callback([flags, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return Passes(*flags, blame); });
  });
}

}  // namespace interp
