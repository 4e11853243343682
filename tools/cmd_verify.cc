// interp verify: proves that the plan of a program cannot disturb itself.
#include <chrono>

#include "absl/strings/str_format.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/plan/plan.h"
#include "interpreter/verify/verify_plan.h"
#include "passes/pipeline.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/elapsed.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/repeated_flag.h"

namespace interp {
namespace {

struct VerifyFlags {
  ModelFlags model;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  PlanFlags plan;
  bool json = false;
};

absl::StatusOr<std::vector<Plan>> MakePlans(Program program, const PassContext& context,
                                            const PlanFlags& flags) {
  PipelineOptions passes = MakePipelineOptions(flags);
  passes.verify = true;
  INTERP_ASSIGN_OR_RETURN(const PipelineResult passed,
                          RunPipeline(std::move(program), context, passes));
  INTERP_ASSIGN_OR_RETURN(const PlanOptions options, MakePlanOptions(flags));
  return BuildPlans(passed.program, options, OpRegistry::Global());
}

ExitCode Report(absl::Span<const Plan> plans, const std::string& path, bool json) {
  const auto start = std::chrono::steady_clock::now();
  const VerifyReport report = VerifyPlans(plans);
  const double took_ms = MsSince(start);
  const std::string text = json ? ToJson(plans, report) + "\n"
                                : absl::StrCat(path, ": ", ToText(plans, report),
                                               absl::StrFormat("  took     %.1f ms\n", took_ms));
  return Show(text, report.proved() ? ExitCode::kOk : ExitCode::kNotProved);
}

ExitCode Verify(const VerifyFlags& flags, const CLI::App& command) {
  if (const auto options = MakePlanOptions(flags.plan); !options.ok()) {
    return Fail(ExitCode::kUsage, options.status());
  }
  const auto passes = DefaultPipeline(MakePipelineOptions(flags.plan));
  if (!passes.ok()) return Fail(ExitCode::kUsage, passes.status());
  absl::StatusOr<Model> model = LoadModel(flags.model);
  if (!model.ok()) return Fail(ExitCode::kModelUnusable, model.status());
  const absl::Status suits = CheckModelFlags(flags.model, *model);
  if (!suits.ok()) return Fail(ExitCode::kUsage, suits);
  if (model->compiled.has_value()) {
    const absl::Status fits = CheckNoPlanFlags(command, {"--feed", "--fetch"});
    if (!fits.ok()) return Fail(ExitCode::kUsage, fits);
    return Report(model->compiled->plans, model->path, flags.json);
  }
  const absl::StatusOr<PassContext> context =
      ContextFor(model->program, flags.feeds, flags.fetches);
  if (!context.ok()) return Fail(ExitCode::kUsage, context.status());
  const absl::StatusOr<std::vector<Plan>> plans =
      MakePlans(std::move(model->program), *context, flags.plan);
  if (!plans.ok()) return Fail(ExitCode::kModelUnusable, Annotate(plans.status(), model->path));
  return Report(*plans, model->path, flags.json);
}

}  // namespace

void AddVerifyCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App& command =
      *app.add_subcommand("verify", "prove that the plan of a program cannot disturb itself");
  AddModelFlags(command, flags->model);
  AddRepeatedFlag(command, "--feed", flags->feeds,
                  "variables to feed instead of the program's own, as in a,b; repeatable");
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch instead of the program's own, as in a,b; repeatable");
  command.add_flag("--json", flags->json, "print the report as one JSON object");
  AddPlanFlags(command, flags->plan);
  command.callback([flags, &command, &exit_code] { exit_code = Verify(*flags, command); });
}

}  // namespace interp
