// interp dump: prints a program at one stage of its way to a plan.
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "core/base/json_writer.h"
#include "core/program_load.h"
#include "core/program_print.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/inspect/plan_print.h"
#include "interpreter/inspect/plan_print_html.h"
#include "interpreter/plan/plan.h"
#include "interpreter/train/micro_batches.h"
#include "passes/feed_fetch.h"
#include "passes/pipeline.h"
#include "passes/prune.h"
#include "passes/readers.h"
#include "passes/train/addto.h"
#include "passes/train/merged_update.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/flag_effects.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/pipeline_flags.h"
#include "tools/pipeline_report.h"
#include "tools/program_page.h"
#include "tools/repeated_flag.h"
#include "tools/training_fetches.h"

namespace interp {
namespace {

struct DumpFlags {
  ModelFlags model;
  std::string stage = "plan";
  std::string format = "text";
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  PipelineFlags pipeline;
  PlanFlags plan;
};

std::vector<std::string> NamesOf(const Program& program, const std::vector<VarId>& ids) {
  std::vector<std::string> names;
  for (const VarId id : ids) names.push_back(program.NameOf(id));
  return names;
}

// `page` is for HTML.
absl::StatusOr<std::string> PrintProgram(const Program& program, const ProgramPage& page,
                                         const std::string& format) {
  if (format == "html") return ToHtml(program, page);
  if (format == "pb") return SaveProgram(program);
  if (format == "json") return ToJson(program) + "\n";
  return format == "dot" ? ToDot(program) : ToText(program);
}

bool ShowsProgram(const DumpFlags& flags) {
  return flags.stage == "program" || flags.stage == "passes";
}

absl::Status CheckFormat(const DumpFlags& flags) {
  if (flags.stage == "jobs" && flags.format != "text" && flags.format != "json") {
    return InvalidArgument("--stage jobs has text and json only");
  }
  if (flags.format != "pb" || ShowsProgram(flags)) return absl::OkStatus();
  return InvalidArgument("--format pb is for programs; --stage ", flags.stage,
                         " has text, json, dot and html");
}

absl::StatusOr<std::optional<MicroBatchOptions>> ReadPipelineFlags(const DumpFlags& flags) {
  if (flags.stage == "jobs" && flags.pipeline.micro_batches == 0) {
    return InvalidArgument("--stage jobs: expected --micro-batches");
  }
  constexpr int64_t kAnyBatch = std::numeric_limits<int64_t>::max();
  return MakeMicroBatchOptions(flags.pipeline, kAnyBatch, /*on_devices=*/true);
}

// Earlier stages know nothing of what decides later ones.
absl::Status CheckEffects(const CLI::App& command, const std::string& stage, bool micro_batches) {
  const std::string when = absl::StrCat("with --stage ", stage);
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command, {"--no-prune"}, !micro_batches, "with --micro-batches"));
  // The place decides where the stages of a pipeline are.
  INTERP_RETURN_IF_ERROR(CheckEffect(
      command, {"--place"},
      stage == "deps" || stage == "plan" || (micro_batches && stage == "passes"), when));
  INTERP_RETURN_IF_ERROR(CheckEffect(command,
                                     {"--feed", "--fetch", "--micro-batches", "--pipeline-stages",
                                      "--pipeline-schedule", "--pipeline-chunks"},
                                     stage != "program", when));
  INTERP_RETURN_IF_ERROR(CheckEffect(command,
                                     {"--disable-pass", "--enable-pass", "--print-after",
                                      "--no-prune", "--precision", "--float32-ops"},
                                     stage != "program" && stage != "jobs", when));
  return CheckEffect(command,
                     {"--in-order", "--no-gc", "--single-stream", "--no-layout", "--no-fold"},
                     stage == "deps" || stage == "plan", when);
}

std::string PrintAnyPlan(absl::Span<const Plan> plans, const Program& program,
                         const DumpFlags& flags) {
  const PlanStage stage = flags.stage == "deps" ? PlanStage::kDeps : PlanStage::kPlan;
  if (flags.format == "html") {
    const std::filesystem::path model(flags.model.model);
    return ToHtml(plans, program, model.filename().string(), stage);
  }
  const PlanFormat format = flags.format == "json"  ? PlanFormat::kJson
                            : flags.format == "dot" ? PlanFormat::kDot
                                                    : PlanFormat::kText;
  return PrintPlans(plans, stage, format, &program);
}

std::string PrintJobs(const MicroBatches& micro_batches, const std::string& format) {
  const PipelineReport report = ReportPipeline(micro_batches.schedule(), std::nullopt);
  if (format == "text") return absl::StrCat(ToText(report), StagesToText(report));
  JsonWriter json;
  WriteJson(report, json);
  return absl::StrCat(std::move(json).Take(), "\n");
}

// As `interp train` does it.
absl::StatusOr<std::unique_ptr<MicroBatches>> CutIntoMicroBatches(MicroBatchOptions options,
                                                                  const PlanFlags& plan,
                                                                  Program& program,
                                                                  PassContext& context,
                                                                  PipelineOptions& passes) {
  INTERP_ASSIGN_OR_RETURN(const PlanOptions plan_options, MakePlanOptions(plan));
  options.place = plan_options.place;
  std::vector<VarId> feeds;
  if (context.feeds.has_value()) {
    for (const std::string& name : *context.feeds) feeds.push_back(program.Find(name));
  } else {
    INTERP_RETURN_IF_ERROR(CheckReaders(program));
    INTERP_ASSIGN_OR_RETURN(feeds, DataVars(program));
    context.feeds = NamesOf(program, feeds);
  }
  if (!context.fetches.has_value()) {
    INTERP_ASSIGN_OR_RETURN(context.fetches, TrainingFetches(program, {}));
  }
  DropReaders(program, feeds);
  MarkMergedUpdates(program);
  INTERP_ASSIGN_OR_RETURN(
      std::unique_ptr<MicroBatches> made,
      MicroBatches::Create(program, *context.feeds, *context.fetches, options, context.ops));
  context.feeds = made->feeds();
  context.fetches = made->fetches();
  passes.disable.emplace_back(kPrunePass);
  passes.enable.emplace_back(kAddToPass);
  return made;
}

absl::StatusOr<std::string> MakeDump(Program program, PassContext context,
                                     const std::optional<MicroBatchOptions>& micro_batches,
                                     const ProgramPage& page, const DumpFlags& flags) {
  if (flags.stage == "program") return PrintProgram(program, page, flags.format);
  PipelineOptions passes = MakePipelineOptions(flags.plan);
  passes.verify = true;
  if (micro_batches.has_value()) {
    INTERP_ASSIGN_OR_RETURN(
        const std::unique_ptr<MicroBatches> cut,
        CutIntoMicroBatches(*micro_batches, flags.plan, program, context, passes));
    if (flags.stage == "jobs") return PrintJobs(*cut, flags.format);
  }
  INTERP_ASSIGN_OR_RETURN(const PipelineResult passed,
                          RunPipeline(std::move(program), context, passes));
  if (flags.stage == "passes") return PrintProgram(passed.program, page, flags.format);
  INTERP_ASSIGN_OR_RETURN(const PlanOptions options, MakePlanOptions(flags.plan));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Plan> plans,
                          BuildPlans(passed.program, options, OpRegistry::Global()));
  return PrintAnyPlan(plans, passed.program, flags);
}

absl::StatusOr<std::string> DumpPlanFile(const Model& model, const ProgramPage& page,
                                         const DumpFlags& flags, ExitCode& blame) {
  if (flags.stage == "jobs" || flags.pipeline.micro_batches > 0) {
    return InvalidArgument(
        "a plan cannot be cut into micro-batches; expected the program that it was made of");
  }
  if (flags.stage == "program") {
    return InvalidArgument("a plan has its program after the passes only");
  }
  blame = ExitCode::kModelUnusable;
  if (flags.stage == "passes") return PrintProgram(model.program, page, flags.format);
  return PrintAnyPlan(model.compiled->plans, model.program, flags);
}

// Where the page shows parameters, those beside the model are looked for. A model may be looked at
// although they cannot be read: `parameters` says so.
absl::StatusOr<Model> LoadForDump(const DumpFlags& flags, absl::Status& parameters) {
  ModelFlags model = flags.model;
  model.finds_params = flags.format == "html" && ShowsProgram(flags);
  absl::StatusOr<Model> loaded = LoadModel(model);
  if (loaded.ok() || !model.finds_params || !model.params.empty()) return loaded;
  parameters = loaded.status();
  return LoadModel(flags.model);
}

absl::StatusOr<ExitCode> Dump(const DumpFlags& flags, const CLI::App& command, ExitCode& blame) {
  INTERP_RETURN_IF_ERROR(CheckFormat(flags));
  INTERP_RETURN_IF_ERROR(CheckEffects(command, flags.stage, flags.pipeline.micro_batches > 0));
  INTERP_RETURN_IF_ERROR(DefaultPipeline(MakePipelineOptions(flags.plan)).status());
  INTERP_ASSIGN_OR_RETURN(const auto micro_batches, ReadPipelineFlags(flags));
  blame = ExitCode::kModelUnusable;
  absl::Status parameters;
  INTERP_ASSIGN_OR_RETURN(Model model, LoadForDump(flags, parameters));
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(CheckModelFlags(flags.model, model));
  ProgramPage page;
  if (flags.format == "html" && ShowsProgram(flags)) page = MakeProgramPage(model, parameters);
  absl::StatusOr<std::string> dump;
  if (model.compiled.has_value()) {
    INTERP_RETURN_IF_ERROR(CheckNoPlanFlags(command, {"--feed", "--fetch"}));
    dump = DumpPlanFile(model, page, flags, blame);
  } else {
    INTERP_ASSIGN_OR_RETURN(const PassContext context,
                            ContextFor(model.program, flags.feeds, flags.fetches));
    blame = ExitCode::kModelUnusable;
    dump = MakeDump(std::move(model.program), context, micro_batches, page, flags);
  }
  INTERP_RETURN_IF_ERROR(Annotate(dump.status(), model.path));
  return Show(*dump);
}

}  // namespace

void AddDumpCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<DumpFlags>();
  CLI::App& command = *app.add_subcommand("dump", "print a program or its plan");
  AddModelFlags(command, flags->model);
  command
      .add_option("--stage", flags->stage,
                  "program, passes, deps or plan; jobs: who computes which micro-batch when")
      ->check(CLI::IsMember({"program", "passes", "deps", "plan", "jobs"}))
      ->capture_default_str();
  command
      .add_option("--format", flags->format,
                  "text, json, dot; pb: the program as a .pdmodel; html: a page that shows the "
                  "program or plan")
      ->check(CLI::IsMember({"text", "json", "dot", "pb", "html"}))
      ->capture_default_str();
  AddRepeatedFlag(command, "--feed", flags->feeds,
                  "variables to feed instead of the program's own, as in a,b; repeatable");
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch instead of the program's own, as in a,b; repeatable");
  AddPipelineFlags(command, flags->pipeline);
  // Nothing runs that could be measured.
  command.remove_option(command.get_option("--pipeline-page"));
  AddPlanFlags(command, flags->plan);
  command.callback([flags, &command, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return Dump(*flags, command, blame); });
  });
}

}  // namespace interp
