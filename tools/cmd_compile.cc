// interp compile: analyses a program and keeps the plan in a file.
#include <memory>

#include "absl/strings/str_format.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan_file/fingerprint.h"
#include "interpreter/plan_file/plan_file.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/flag_effects.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/outputs.h"
#include "tools/repeated_flag.h"
#include "tools/shaped_run.h"
#include "tools/sizes.h"

namespace interp {
namespace {

struct CompileFlags {
  ModelFlags model;
  std::string out;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  bool pack = false;
  std::vector<std::string> shapes;
  int threads = 0;
  PlanFlags plan;
};

// Takes the program out of `model`. `blame`: the exit code of an error.
absl::StatusOr<CompiledProgram> CompileModel(const CompileFlags& flags, const PlanOptions& plan,
                                             Model& model, ExitCode& blame) {
  const PipelineOptions passes = MakePipelineOptions(flags.plan);
  blame = ExitCode::kUsage;
  const auto feeds = ResolveNames(model.program, flags.feeds);
  if (!feeds.ok()) return Annotate(feeds.status(), "--feed");
  const auto fetches = ResolveNames(model.program, flags.fetches);
  if (!fetches.ok()) return Annotate(fetches.status(), "--fetch");
  const auto all_fetches = FetchNames(model.program, flags.fetches);
  if (all_fetches.ok()) {
    INTERP_RETURN_IF_ERROR(CheckSeen(model.path, model.program, *all_fetches, passes));
  }
  blame = ExitCode::kModelUnusable;
  const absl::StatusOr<uint64_t> fingerprint = FingerprintOf(model.program);
  if (!fingerprint.ok()) return Annotate(fingerprint.status(), model.path);
  absl::StatusOr<CompiledProgram> compiled =
      Compile(std::move(model.program), *feeds, *fetches, passes, plan, OpRegistry::Global());
  if (!compiled.ok()) return Annotate(compiled.status(), model.path);
  NoteWhatStaysWide(model.path, passes, compiled->program);
  compiled->source_fingerprint = *fingerprint;
  return compiled;
}

// The parameters of the program that have a value, sorted by name. They keep it when a run changes
// that of the variable, as nobody writes into memory that is shared.
PackedConstants TakeParameters(const Program& program, const Scope& scope) {
  PackedConstants packed{.machine = MachineFingerprint()};
  for (const ParamDecl& param : ParamsOf(program)) {
    const Variable* const variable = scope.FindLocal(param.name);
    if (variable == nullptr || !variable->tensor.has_memory()) continue;
    packed.parameters.emplace_back(param.name, variable->tensor);
    packed.parameter_checksums.push_back(ChecksumOf(variable->tensor));
  }
  return packed;
}

// Adds the parameters, and what a run on the feeds computes of them.
absl::Status Pack(const CompileFlags& flags, const std::vector<NamedTensor>& named,
                  const std::shared_ptr<Scope>& scope, CompiledProgram& compiled) {
  PackedConstants packed = TakeParameters(compiled.program, *scope);
  CoreOptions options;
  options.num_threads = flags.threads;
  INTERP_ASSIGN_OR_RETURN(const auto core, InterpreterCore::Create(compiled, scope, options));
  INTERP_RETURN_IF_ERROR(core->CheckParameters());
  std::vector<Tensor> feeds;
  for (const NamedTensor& feed : named) feeds.push_back(feed.second);
  INTERP_RETURN_IF_ERROR(core->Run(feeds).status());
  packed.entries = core->PackedEntries();
  compiled.packed = std::make_shared<const PackedConstants>(std::move(packed));
  return absl::OkStatus();
}

std::string Summarize(const CompiledProgram& compiled, const std::string& path) {
  const Plan& main = compiled.main();
  std::string text =
      absl::StrFormat("%s: %d instructions, %d feeds, %d fetches\n", path, main.instructions.size(),
                      main.feeds.size(), main.fetches.size());
  if (compiled.packed == nullptr) return text;
  size_t size_bytes = 0;
  for (const PackedEntry& entry : compiled.packed->entries) {
    for (const Tensor& tensor : entry.tensors) size_bytes += tensor.size_bytes();
  }
  absl::StrAppendFormat(&text, "%s: %d parameters, %d packed constants of %s\n", path,
                        compiled.packed->parameters.size(), compiled.packed->entries.size(),
                        FormatBytes(size_bytes));
  return text;
}

absl::Status CheckCompileFlags(const CompileFlags& flags, const CLI::App& command) {
  return CheckEffect(command, {"--params", "--shape", "--threads"}, flags.pack, "without --pack");
}

ExitCode CompileToFile(const CompileFlags& flags, const CLI::App& command) {
  const absl::Status effective = CheckCompileFlags(flags, command);
  if (!effective.ok()) return Fail(ExitCode::kUsage, effective);
  const auto [model_file, params_file] = InputsOf(flags.model);
  const absl::Status distinct = CheckDistinct({{"-o", flags.out}}, {model_file, params_file});
  if (!distinct.ok()) return Fail(ExitCode::kUsage, distinct);
  const auto passes = DefaultPipeline(MakePipelineOptions(flags.plan));
  if (!passes.ok()) return Fail(ExitCode::kUsage, passes.status());
  const absl::StatusOr<PlanOptions> plan = MakePlanOptions(flags.plan);
  if (!plan.ok()) return Fail(ExitCode::kUsage, plan.status());
  if (const absl::Status writable = CheckWritable(flags.out); !writable.ok()) {
    return Fail(ExitCode::kRunFailed, Annotate(writable, "-o"));
  }
  absl::StatusOr<Model> model = LoadModel(flags.model);
  if (!model.ok()) return Fail(ExitCode::kModelUnusable, model.status());
  if (model->compiled.has_value()) {
    return Fail(ExitCode::kUsage, InvalidArgument(model->path, ": is a plan already"));
  }
  const absl::Status spared =
      CheckDistinct({{"-o", flags.out}}, FilesOfParameters(params_file, model->program));
  if (!spared.ok()) return Fail(ExitCode::kUsage, spared);
  ExitCode blame = ExitCode::kUsage;
  absl::StatusOr<CompiledProgram> compiled = CompileModel(flags, *plan, *model, blame);
  if (!compiled.ok()) return Fail(blame, compiled.status());
  if (flags.pack) {
    const auto feeds = FeedsOfShapes(compiled->program, compiled->main(), flags.shapes);
    if (!feeds.ok()) return Fail(ExitCode::kUsage, Annotate(feeds.status(), model->path));
    const absl::Status packed = Pack(flags, *feeds, model->scope, *compiled);
    if (!packed.ok()) return Fail(ExitCode::kRunFailed, Annotate(packed, model->path));
  }
  if (const absl::Status saved = SavePlan(*compiled, flags.out); !saved.ok()) {
    return Fail(ExitCode::kRunFailed, Annotate(saved, "-o"));
  }
  return Show(Summarize(*compiled, flags.out));
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
  command.add_flag("--pack", flags->pack,
                   "keep the parameters, too, and what a run on random feeds computes of them: "
                   "packed weights, folded constants; for this processor and this build");
  command.add_option("--params", flags->model.params,
                     "with --pack: the parameters, as those of `interp run`; default: those beside "
                     "the program");
  AddRepeatedFlag(command, "--shape", flags->shapes,
                  "with --pack: dims of a feed of that run, as in x=1x3x224x224; default: the "
                  "declared ones, a first unknown dim being 1; repeatable");
  command
      .add_option("--threads", flags->threads,
                  "with --pack: threads inside an op of that run; 0: as many as CPUs")
      ->check(CLI::Range(0, kMaxThreads));
  AddPlanFlags(command, flags->plan);
  command.callback([flags, &command, &exit_code] {
    flags->model.finds_params = flags->pack;
    exit_code = CompileToFile(*flags, command);
  });
}

}  // namespace interp
