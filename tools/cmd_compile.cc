// interp compile: analyses a program and keeps the plan in a file.
#include "absl/strings/str_format.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/plan_file/fingerprint.h"
#include "interpreter/plan_file/plan_file.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/repeated_flag.h"

namespace interp {
namespace {

struct CompileFlags {
  ModelFlags model;
  std::string out;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  PlanFlags plan;
};

absl::StatusOr<CompiledProgram> CompileModel(Program program, const CompileFlags& flags,
                                             const PlanOptions& plan,
                                             const std::vector<std::string>& feeds,
                                             const std::vector<std::string>& fetches) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t fingerprint, FingerprintOf(program));
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled,
                          Compile(std::move(program), feeds, fetches,
                                  MakePipelineOptions(flags.plan), plan, OpRegistry::Global()));
  compiled.source_fingerprint = fingerprint;
  return compiled;
}

ExitCode CompileToFile(const CompileFlags& flags) {
  const auto passes = DefaultPipeline(MakePipelineOptions(flags.plan));
  if (!passes.ok()) return Fail(ExitCode::kUsage, passes.status());
  const absl::StatusOr<PlanOptions> plan = MakePlanOptions(flags.plan);
  if (!plan.ok()) return Fail(ExitCode::kUsage, plan.status());
  absl::StatusOr<Model> model = LoadModel(flags.model);
  if (!model.ok()) return Fail(ExitCode::kModelUnusable, model.status());
  if (model->compiled.has_value()) {
    return Fail(ExitCode::kUsage, InvalidArgument(model->path, ": is a plan already"));
  }
  const auto feeds = ResolveNames(model->program, flags.feeds);
  if (!feeds.ok()) return Fail(ExitCode::kUsage, Annotate(feeds.status(), "--feed"));
  const auto fetches = ResolveNames(model->program, flags.fetches);
  if (!fetches.ok()) return Fail(ExitCode::kUsage, Annotate(fetches.status(), "--fetch"));
  const absl::StatusOr<CompiledProgram> compiled =
      CompileModel(std::move(model->program), flags, *plan, *feeds, *fetches);
  if (!compiled.ok()) {
    return Fail(ExitCode::kModelUnusable, Annotate(compiled.status(), model->path));
  }
  if (const absl::Status saved = SavePlan(*compiled, flags.out); !saved.ok()) {
    return Fail(ExitCode::kRunFailed, Annotate(saved, "-o"));
  }
  const Plan& main = compiled->main();
  return Show(absl::StrFormat("%s: %d instructions, %d feeds, %d fetches\n", flags.out,
                              main.instructions.size(), main.feeds.size(), main.fetches.size()));
}

}  // namespace

void AddCompileCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App& command = *app.add_subcommand("compile", "keep the plan of a program in a file");
  command
      .add_option("MODEL", flags->model.model,
                  "program: .pdmodel, __model__ or .pb; .txt: the text form of `interp dump`")
      ->required();
  command.add_option("-o,--out", flags->out, "the plan file to write")->required();
  AddRepeatedFlag(command, "--feed", flags->feeds,
                  "variables to feed instead of the program's own, as in a,b; repeatable");
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch instead of the program's own, as in a,b; repeatable");
  AddPlanFlags(command, flags->plan);
  command.callback([flags, &exit_code] { exit_code = CompileToFile(*flags); });
}

}  // namespace interp
