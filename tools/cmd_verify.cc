// interp verify: proves that the plan of a program cannot disturb itself.
#include <chrono>

#include "absl/strings/str_format.h"
#include "core/base/annotate.h"
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

absl::StatusOr<ExitCode> Verify(const VerifyFlags& flags, const CLI::App& command,
                                ExitCode& blame) {
  INTERP_RETURN_IF_ERROR(MakePlanOptions(flags.plan).status());
  INTERP_RETURN_IF_ERROR(DefaultPipeline(MakePipelineOptions(flags.plan)).status());
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(flags.model));
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(CheckModelFlags(flags.model, model));
  if (model.compiled.has_value()) {
    INTERP_RETURN_IF_ERROR(CheckNoPlanFlags(command, {"--feed", "--fetch"}));
    return Report(model.compiled->plans, model.path, flags.json);
  }
  INTERP_ASSIGN_OR_RETURN(const PassContext context,
                          ContextFor(model.program, flags.feeds, flags.fetches));
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(
      const std::vector<Plan> plans,
      Annotate(MakePlans(std::move(model.program), context, flags.plan), model.path));
  return Report(plans, model.path, flags.json);
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
  command.callback([flags, &command, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return Verify(*flags, command, blame); });
  });
}

}  // namespace interp
