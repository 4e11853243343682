// interp compare: where two programs, or two ways to run one, begin to differ.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/annotate.h"
#include "core/base/json_writer.h"
#include "interpreter/interpreter_core.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/feeds.h"
#include "tools/flag_effects.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/number_flag.h"
#include "tools/outputs.h"
#include "tools/repeated_flag.h"
#include "tools/sizes.h"
#include "tools/table.h"
#include "tools/variable_capture.h"

namespace interp {
namespace {

// One of the two: a program, and how it is run.
struct Side {
  std::string model;   // of the second: empty for that of the first
  std::string params;  // likewise
  std::string flags;   // as `interp run` takes them
};

struct CompareFlags {
  Side a;
  Side b;
  FeedFlags feeds;
  std::vector<std::string> fetches;
  Tolerance tolerance;
  bool all = false;
  bool json = false;
};

constexpr int32_t kFetched = -1;  // a "write" of its own

// A value that both have written.
struct Row {
  std::string op;  // of the first side
  std::string dtypes;
  int32_t write = 0;
  Comparison comparison;
};

struct Differences {
  std::vector<Row> rows;  // in the first side's order
  int64_t only_a = 0;     // values that the other side has not
  int64_t only_b = 0;
};

struct SideFlags {
  PlanFlags plan;
  RunFlags run;
};

// InvalidArgument for blank text, which comes from a script's variable that is not set, and for a
// quote without its other one, which would be taken for a part of a value.
absl::Status CheckFlagText(absl::string_view text) {
  if (absl::StripAsciiWhitespace(text).empty()) {
    return InvalidArgument("the flags are blank; expected some, as in --b='--precision bf16'");
  }
  char open = '\0';
  for (const char c : text) {
    if (open != '\0') {
      if (c == open) open = '\0';
    } else if (c == '\'' || c == '"' || c == '`') {
      open = c;
    }
  }
  if (open == '\0') return absl::OkStatus();
  return InvalidArgument("the flags \"", text, "\" have no second ", absl::string_view(&open, 1));
}

absl::StatusOr<CoreOptions> ParseSideFlags(const std::string& text, uint64_t seed) {
  if (!text.empty()) INTERP_RETURN_IF_ERROR(CheckFlagText(text));
  SideFlags flags;
  CLI::App app("", "");
  app.set_help_flag();  // the help of no command
  AddPlanFlags(app, flags.plan);
  AddRunFlags(app, flags.run);
  try {
    app.parse(text, /*program_name_included=*/false);
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(error.what(), "; expected flags of `interp run` for plans and runs");
  }
  INTERP_RETURN_IF_ERROR(
      CheckEffect(app, {"--timeout"}, false, "in `interp compare`, which measures nothing"));
  INTERP_ASSIGN_OR_RETURN(CoreOptions options, MakeCoreOptions(flags.plan, flags.run));
  INTERP_RETURN_IF_ERROR(CheckRunFlags(app, flags.run, options.plan.place.kind));
  LimitToMachine(flags.run, options.plan.place.kind, /*side_by_side=*/2, options);
  options.random_seed = seed;
  return options;
}

// A side that is ready to run.
struct PreparedSide {
  std::string path;
  std::unique_ptr<InterpreterCore> core;
  std::vector<Tensor> feeds;
};

absl::StatusOr<PreparedSide> Prepare(const Side& side, const CompareFlags& flags, ExitCode& blame) {
  blame = ExitCode::kUsage;
  INTERP_ASSIGN_OR_RETURN(const CoreOptions options,
                          ParseSideFlags(side.flags, flags.feeds.limits.seed));
  INTERP_RETURN_IF_ERROR(CheckReadAgain(side.model));
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(
      Model model, LoadModel(ModelFlags{side.model, side.params, "", /*finds_params=*/true}));
  blame = ExitCode::kUsage;
  if (model.compiled.has_value()) {
    return InvalidArgument(model.path, ": expected a program; a plan has been decided");
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> feeds, ReadFeeds(model.program, flags.feeds));
  INTERP_RETURN_IF_ERROR(AddRandomFeeds(model.program, flags.feeds.limits.seed, feeds));
  AddDefaultLods(model.program, feeds);
  INTERP_ASSIGN_OR_RETURN(const std::vector<std::string> fetches,
                          FetchNames(model.program, flags.fetches));
  INTERP_RETURN_IF_ERROR(CheckSeen(model.path, model.program, fetches, options.passes));
  PreparedSide prepared{model.path, nullptr, {}};
  std::vector<std::string> names;
  for (NamedTensor& feed : feeds) {
    names.push_back(feed.first);
    prepared.feeds.push_back(std::move(feed.second));
  }
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(prepared.core, InterpreterCore::Create(std::move(model.program), names,
                                                                 fetches, model.scope, options));
  NoteWhatStaysWide(prepared.path, options.passes, prepared.core->program());
  INTERP_RETURN_IF_ERROR(prepared.core->CheckParameters());
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(prepared.core->CheckFeeds(prepared.feeds));
  return prepared;
}

// Mixed precision computes NAME as NAME.cast_bf16 (Paddle's names): where the run does not write
// NAME itself, it goes by that.
void DropCastSuffixes(std::vector<WrittenValue>& values) {
  absl::flat_hash_set<std::string> names;
  for (const WrittenValue& value : values) names.insert(value.variable);
  for (WrittenValue& value : values) {
    for (const absl::string_view suffix : {".cast_bf16", ".cast_fp16"}) {
      absl::string_view base = value.variable;
      if (absl::ConsumeSuffix(&base, suffix) && !names.contains(base)) {
        value.variable = std::string(base);
        break;
      }
    }
  }
}

// Whether fetching the variable gives back what it was fed. Each side is fed the same.
bool GivesBackFeed(const Plan& plan, const std::string& name) {
  const auto fed = [&](const FeedSpec& feed) { return feed.name == name; };
  const auto writes = [&](const Instruction& instruction) {
    if (instruction.op_type == "feed") return false;
    return std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                       [&](VarId id) { return id >= 0 && plan.vars[id].name == name; });
  };
  return std::any_of(plan.feeds.begin(), plan.feeds.end(), fed) &&
         std::none_of(plan.instructions.begin(), plan.instructions.end(), writes);
}

// Everything that one run of the side computes, then what it fetches: that may lie on a device.
absl::StatusOr<std::vector<WrittenValue>> RunSide(const Side& side, const CompareFlags& flags,
                                                  ExitCode& blame) {
  INTERP_ASSIGN_OR_RETURN(PreparedSide prepared, Prepare(side, flags, blame));
  blame = ExitCode::kRunFailed;
  VariableCapture capture(*prepared.core);
  INTERP_ASSIGN_OR_RETURN(
      std::vector<Tensor> fetched,
      Annotate(prepared.core->Run(prepared.feeds, {.observer = &capture}), prepared.path));
  INTERP_ASSIGN_OR_RETURN(std::vector<WrittenValue> values, capture.Take());
  DropCastSuffixes(values);
  const Plan& plan = prepared.core->plan();
  const std::vector<std::string>& names = plan.fetches;
  for (size_t i = 0; i < names.size(); ++i) {
    if (GivesBackFeed(plan, names[i])) continue;
    values.push_back({.variable = names[i],
                      .write = kFetched,
                      .op = "what is fetched",
                      .at = static_cast<int32_t>(plan.order.size()),
                      .value = std::move(fetched[i])});
  }
  return values;
}

using Key = std::pair<std::string, int32_t>;

absl::StatusOr<Differences> FindDifferences(const std::vector<WrittenValue>& a,
                                            const std::vector<WrittenValue>& b,
                                            const Tolerance& tolerance) {
  absl::flat_hash_map<Key, const WrittenValue*> of_b;
  for (const WrittenValue& value : b) of_b.emplace(Key(value.variable, value.write), &value);
  Differences differences;
  for (const WrittenValue& value : a) {
    const auto other = of_b.find(Key(value.variable, value.write));
    if (other == of_b.end()) {
      ++differences.only_a;
      continue;
    }
    INTERP_ASSIGN_OR_RETURN(const Tensor expected, WidenTensor(value.value));
    INTERP_ASSIGN_OR_RETURN(const Tensor got, WidenTensor(other->second->value));
    const DType dtype_a = value.value.dtype;
    const DType dtype_b = other->second->value.dtype;
    differences.rows.push_back({value.op,
                                dtype_a == dtype_b
                                    ? std::string(Name(dtype_a))
                                    : absl::StrCat(Name(dtype_a), " ", Name(dtype_b)),
                                value.write, Compare({value.variable, got}, expected, tolerance)});
  }
  differences.only_b = std::ssize(b) - std::ssize(differences.rows);
  return differences;
}

const Row* FindFirst(const Differences& differences) {
  const auto first = std::find_if(differences.rows.begin(), differences.rows.end(),
                                  [](const Row& row) { return !row.comparison.ok(); });
  return first == differences.rows.end() ? nullptr : &*first;
}

std::vector<std::string> Cells(const Row& row) {
  constexpr int kDigits = 7;
  const Comparison& c = row.comparison;
  std::vector<std::string> cells = {row.op, c.name, row.dtypes, absl::StrCat(c.num_elements),
                                    absl::StrCat(c.num_different)};
  if (!c.problem.empty()) {
    cells.insert(cells.end(), {"", "", "", c.problem});
    return cells;
  }
  cells.push_back(c.relative_error.has_value() ? absl::StrFormat("%.2g", *c.relative_error) : "");
  cells.push_back(WorstText(c.worst_expected, c.worst_expected_text, kDigits));
  cells.push_back(WorstText(c.worst_got, c.worst_got_text, kDigits));
  cells.push_back(c.worst_index);
  return cells;
}

std::string ToText(const Differences& differences, bool all) {
  constexpr int kMost = 20;  // of the rows that differ
  std::vector<std::vector<std::string>> table = {
      {"op", "variable", "dtype", "elements", "differ", "relative", "worst: A", "B", "at"}};
  int64_t differ = 0;
  for (const Row& row : differences.rows) {
    if (!row.comparison.ok()) ++differ;
    if (all || (!row.comparison.ok() && differ <= kMost)) table.push_back(Cells(row));
  }
  std::string text = absl::StrCat(Counted(std::ssize(differences.rows), "value"), " compared, ",
                                  differ, differ == 1 ? " differs" : " differ");
  if (differences.only_a > 0 || differences.only_b > 0) {
    absl::StrAppendFormat(&text, "; only A has %d, only B %d", differences.only_a,
                          differences.only_b);
  }
  absl::StrAppend(&text, "\n");
  if (const Row* const first = FindFirst(differences); first != nullptr) {
    absl::StrAppend(&text, "first: ", first->op, ", ", FormatComparison(first->comparison), "\n");
  }
  if (table.size() > 1) absl::StrAppend(&text, "\n", FormatTable(table));
  if (!all && differ > kMost) {
    absl::StrAppend(&text, "and ", differ - kMost, " more; --all shows every value\n");
  }
  return text;
}

void WriteRow(const Row& row, JsonWriter& json) {
  const Comparison& c = row.comparison;
  json.BeginObject();
  json.Field("op", row.op);
  json.Field("variable", c.name);
  json.Field("write", row.write);
  json.Field("dtype", row.dtypes);
  WriteComparison(c, json);
  json.EndObject();
}

std::string ToJson(const Differences& differences) {
  JsonWriter json;
  json.BeginObject();
  const Row* const first = FindFirst(differences);
  json.Field("first", first == nullptr ? std::nullopt
                                       : std::optional<absl::string_view>(first->comparison.name));
  json.Field("only_a", differences.only_a);
  json.Field("only_b", differences.only_b);
  json.Array("values", differences.rows, [&](const Row& row) {
    json.Line();
    WriteRow(row, json);
  });
  json.EndObject();
  return std::move(json).Take() + "\n";
}

absl::StatusOr<ExitCode> CompareSides(const CompareFlags& flags, ExitCode& blame) {
  Side b = flags.b;
  if (b.model.empty() && b.params.empty() && b.flags.empty() && flags.a.flags.empty()) {
    return InvalidArgument(
        "nothing to compare with: give a second program, parameters with --params-b, or ways to "
        "run with --a and --b");
  }
  if (b.model.empty()) {
    b.model = flags.a.model;
    if (b.params.empty()) b.params = flags.a.params;
  }
  INTERP_ASSIGN_OR_RETURN(const auto values_a, Annotate(RunSide(flags.a, flags, blame), "A"));
  INTERP_ASSIGN_OR_RETURN(const auto values_b, Annotate(RunSide(b, flags, blame), "B"));
  blame = ExitCode::kRunFailed;
  INTERP_ASSIGN_OR_RETURN(const Differences differences,
                          FindDifferences(values_a, values_b, flags.tolerance));
  if (differences.rows.empty()) {
    blame = ExitCode::kUsage;
    return InvalidArgument(
        "A and B compute no variable of one name; compare programs that share names, or fetch a "
        "shared variable with --fetch");
  }
  return Show(flags.json ? ToJson(differences) : ToText(differences, flags.all),
              FindFirst(differences) == nullptr ? ExitCode::kOk : ExitCode::kMismatch);
}

}  // namespace

void AddCompareCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App& command = *app.add_subcommand(
      "compare", "find where two programs, or two ways to run one, begin to differ");
  command.add_option("A", flags->a.model, "a program")->required();
  command.add_option("B", flags->b.model, "another one; default: the same");
  command.add_option("--params", flags->a.params,
                     "parameters of A; default: what lies beside it, as of `interp run`");
  command.add_option("--params-b", flags->b.params, "parameters of B");
  command.add_option("--a", flags->a.flags,
                     "how A is run: flags of `interp run` for plans and runs, in one argument");
  command.add_option("--b", flags->b.flags, "how B is run, as in --b='--precision bf16'");
  AddFeedFlags(command, flags->feeds);
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch; default: what the program fetches");
  command.add_option("--rtol", flags->tolerance.rtol, "relative tolerance")
      ->check(Real(0, /*least_included=*/true))
      ->capture_default_str();
  command.add_option("--atol", flags->tolerance.atol, "absolute tolerance")
      ->check(Real(0, /*least_included=*/true))
      ->capture_default_str();
  command.add_flag("--all", flags->all, "also show what does not differ");
  command.add_flag("--json", flags->json, "print one JSON object");
  command.callback([flags, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return CompareSides(*flags, blame); });
  });
}

}  // namespace interp
