// interp compile: analyses a program and keeps the plan in a file.
#include <algorithm>
#include <initializer_list>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "core/base/annotate.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan_file/fingerprint.h"
#include "interpreter/plan_file/plan_file.h"
#include "passes/feed_fetch.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/feeds.h"
#include "tools/flag_effects.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/number_flag.h"
#include "tools/outputs.h"
#include "tools/plan_inputs.h"
#include "tools/ranks.h"
#include "tools/repeated_flag.h"
#include "tools/sizes.h"

namespace interp {
namespace {

struct CompileFlags {
  ModelFlags model;
  std::string out;
  FeedFlags feeds;  // names of variables, too
  std::vector<std::string> fetches;
  bool pack = false;
  int threads = 0;
  std::string timeout;
  bool no_check_shape = false;
  PlanFlags plan;
};

// What is for the run of --pack alone.
constexpr std::initializer_list<const char*> kPackFlags = {
    "--params", "--shape",   "--feed-lod", "--max-file-memory",
    "--seed",   "--threads", "--timeout",  "--no-check-shape"};

// The variables to feed, and what is fed in the run of --pack.
struct ChosenFeeds {
  std::vector<std::string> names;  // empty: the program's own
  std::vector<NamedTensor> given;
};

// Adds those of `given` that are neither among `names` nor, where there are none, the program's
// own.
absl::Status AddGivenNames(const Program& program, absl::Span<const NamedTensor> given,
                           std::vector<std::string>& names) {
  std::vector<std::string> all = names;
  if (names.empty()) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> own, FeedVars(program));
    for (const VarId id : own) all.push_back(program.NameOf(id));
  }
  const size_t num_known = all.size();
  for (const NamedTensor& feed : given) {
    if (!absl::c_linear_search(all, feed.first)) all.push_back(feed.first);
  }
  if (all.size() > num_known) names = std::move(all);
  return absl::OkStatus();
}

absl::StatusOr<ChosenFeeds> ChooseFeeds(const Program& program, const CompileFlags& flags) {
  FeedFlags values = flags.feeds;
  const auto first_value =
      std::stable_partition(values.feeds.begin(), values.feeds.end(),
                            [&](const auto& argument) { return !GivesFeed(program, argument); });
  const std::vector<std::string> names(values.feeds.begin(), first_value);
  values.feeds.erase(values.feeds.begin(), first_value);
  if (!values.feeds.empty() && !flags.pack) {
    return InvalidArgument("--feed ", values.feeds[0], " has no effect without --pack, which runs ",
                           "the program; expected names of variables, as in a,b");
  }
  for (const std::string& file : FilesOfFeeds(program, values)) {
    INTERP_RETURN_IF_ERROR(CheckDistinct({{"-o", flags.out}}, {{"--feed", file}}));
  }
  ChosenFeeds chosen;
  INTERP_ASSIGN_OR_RETURN(chosen.names, Annotate(ResolveNames(program, names), "--feed"));
  INTERP_ASSIGN_OR_RETURN(chosen.given, ReadFeeds(program, values));
  // The last ones are those of --shape, which chooses nothing.
  const auto fed =
      absl::MakeConstSpan(chosen.given).first(chosen.given.size() - values.shapes.size());
  INTERP_RETURN_IF_ERROR(AddGivenNames(program, fed, chosen.names));
  return chosen;
}

// Takes the program out of `model`. `blame`: the exit code of an error.
absl::StatusOr<CompiledProgram> CompileModel(const CompileFlags& flags,
                                             const std::vector<std::string>& feeds,
                                             const PlanOptions& plan, Model& model,
                                             ExitCode& blame) {
  blame = ExitCode::kUsage;
  INTERP_ASSIGN_OR_RETURN(const auto fetches,
                          Annotate(ResolveNames(model.program, flags.fetches), "--fetch"));
  const auto all_fetches = FetchNames(model.program, flags.fetches);
  PlanFlags plan_flags = flags.plan;
  // What fetches nothing, such as a start-up program, runs for what it leaves.
  plan_flags.keeps_state = !all_fetches.ok() || all_fetches->empty();
  const PipelineOptions passes = MakePipelineOptions(plan_flags);
  if (all_fetches.ok()) {
    INTERP_RETURN_IF_ERROR(CheckSeen(model.path, model.program, *all_fetches, passes));
  }
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(const uint64_t fingerprint,
                          Annotate(FingerprintOf(model.program), model.path));
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled,
                          Annotate(Compile(std::move(model.program), feeds, fetches, passes, plan,
                                           OpRegistry::Global()),
                                   model.path));
  NoteWhatStaysWide(model.path, passes, compiled.program);
  compiled.source_fingerprint = fingerprint;
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

// The feeds of the plan in its order: random where none is given.
absl::StatusOr<std::vector<Tensor>> FeedsOfPlan(const CompiledProgram& compiled, uint64_t seed,
                                                std::vector<NamedTensor> given) {
  std::vector<std::string> wanted;
  for (const FeedSpec& feed : compiled.main().feeds) wanted.push_back(feed.name);
  INTERP_RETURN_IF_ERROR(AddRandomFeeds(compiled.program, wanted, seed, given));
  AddDefaultLods(compiled.program, given);
  for (const NamedTensor& feed : given) {
    if (absl::c_linear_search(wanted, feed.first)) continue;
    return InvalidArgument("--shape: the plan does not feed '", feed.first,
                           "'; choose what it feeds with --feed");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<NamedTensor> ordered,
                          OrderFeeds(compiled.main(), given));
  std::vector<Tensor> feeds;
  for (const NamedTensor& feed : ordered) feeds.push_back(feed.second);
  return feeds;
}

// Adds the parameters, and what a run on the feeds computes of them. `blame`: the exit code of an
// error.
absl::Status Pack(const CompileFlags& flags, std::vector<NamedTensor> given,
                  const std::shared_ptr<Scope>& scope, CompiledProgram& compiled, ExitCode& blame) {
  blame = ExitCode::kUsage;
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> feeds,
                          FeedsOfPlan(compiled, flags.feeds.limits.seed, std::move(given)));
  RunOptions run;
  INTERP_ASSIGN_OR_RETURN(run.timeout, ParseTimeout(flags.timeout));
  blame = ExitCode::kModelUnusable;
  PackedConstants packed = TakeParameters(compiled.program, *scope);
  CoreOptions options;
  options.num_threads = flags.threads;
  options.random_seed = flags.feeds.limits.seed;
  options.check_feed_shapes = !flags.no_check_shape;
  INTERP_ASSIGN_OR_RETURN(const auto core, InterpreterCore::Create(compiled, scope, options));
  INTERP_RETURN_IF_ERROR(core->CheckParameters());
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(core->CheckFeeds(feeds));
  blame = ExitCode::kRunFailed;
  INTERP_RETURN_IF_ERROR(core->Run(feeds, run).status());
  packed.entries = core->PackedEntries();
  compiled.packed = std::make_shared<const PackedConstants>(std::move(packed));
  return absl::OkStatus();
}

std::string Summarize(const CompiledProgram& compiled, const std::string& path) {
  const Plan& main = compiled.main();
  std::string text = absl::StrCat(path, ": ", Counted(std::ssize(main.instructions), "instruction"),
                                  ", ", Counted(std::ssize(main.feeds), "feed"), ", ",
                                  Counted(std::ssize(main.fetches), "fetch"), "\n");
  if (compiled.packed == nullptr) return text;
  size_t size_bytes = 0;
  for (const PackedEntry& entry : compiled.packed->entries) {
    for (const Tensor& tensor : entry.tensors) size_bytes += tensor.size_bytes();
  }
  absl::StrAppend(&text, path, ": ", Counted(std::ssize(compiled.packed->parameters), "parameter"),
                  ", ", Counted(std::ssize(compiled.packed->entries), "packed constant"), " of ",
                  FormatBytes(size_bytes), "\n");
  return text;
}

// What can be said before the program is read.
absl::StatusOr<PlanOptions> CheckCompileFlags(const CompileFlags& flags, const CLI::App& command) {
  INTERP_RETURN_IF_ERROR(CheckEffect(command, kPackFlags, flags.pack, "without --pack"));
  INTERP_RETURN_IF_ERROR(ParseTimeout(flags.timeout).status());
  const auto [model_file, params_file] = InputsOf(flags.model);
  INTERP_RETURN_IF_ERROR(CheckDistinct({{"-o", flags.out}}, {model_file, params_file}));
  INTERP_RETURN_IF_ERROR(DefaultPipeline(MakePipelineOptions(flags.plan)).status());
  return MakePlanOptions(flags.plan);
}

// `blame`: the exit code of an error.
absl::StatusOr<CompiledProgram> CompileAndPack(const CompileFlags& flags, const PlanOptions& plan,
                                               ExitCode& blame) {
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(flags.model));
  blame = ExitCode::kUsage;
  if (model.compiled.has_value()) return InvalidArgument(model.path, ": is a plan already");
  const NamedFile params = InputsOf(flags.model).params;
  INTERP_RETURN_IF_ERROR(CheckDistinct({{"-o", flags.out}}, FilesOfParameters(params, model)));
  INTERP_ASSIGN_OR_RETURN(ChosenFeeds feeds, ChooseFeeds(model.program, flags));
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled,
                          CompileModel(flags, feeds.names, plan, model, blame));
  if (!flags.pack) return compiled;
  INTERP_RETURN_IF_ERROR(
      Annotate(Pack(flags, std::move(feeds.given), model.scope, compiled, blame), model.path));
  return compiled;
}

absl::StatusOr<ExitCode> CompileToFile(const CompileFlags& flags, const CLI::App& command,
                                       ExitCode& blame) {
  INTERP_RETURN_IF_ERROR(CheckStartedAlone("compile"));
  INTERP_ASSIGN_OR_RETURN(const PlanOptions plan, CheckCompileFlags(flags, command));
  blame = ExitCode::kRunFailed;
  INTERP_RETURN_IF_ERROR(Annotate(CheckWritable(flags.out), "-o"));
  INTERP_ASSIGN_OR_RETURN(const CompiledProgram compiled, CompileAndPack(flags, plan, blame));
  blame = ExitCode::kRunFailed;
  INTERP_RETURN_IF_ERROR(Annotate(SavePlan(compiled, flags.out), "-o"));
  return Show(Summarize(compiled, flags.out));
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
  AddFeedFlags(command, flags->feeds);
  command.get_option("--feed")->description(
      "variables to feed instead of the program's own, as in a,b; with --pack: what that run "
      "feeds, as of `interp run`, default: random; repeatable");
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch instead of the program's own, as in a,b; repeatable");
  command.add_flag("--pack", flags->pack,
                   "keep the parameters, too, and what a run computes of them: packed weights, "
                   "folded constants; for this processor and this build");
  command.add_option("--params", flags->model.params,
                     "the parameters, as those of `interp run`; default: those beside the program");
  AddRepeatedFlag(command, "--shape", flags->feeds.shapes,
                  "dims of a random feed of that run, as in x=1x3x224x224; default: the declared "
                  "ones, a first unknown dim being 1; repeatable");
  command
      .add_option("--threads", flags->threads,
                  "threads inside an op of that run; 0: as many as CPUs")
      ->transform(Whole(0, kMaxThreads));
  AddTimeoutFlag(command, flags->timeout);
  AddNoCheckShapeFlag(command, flags->no_check_shape);
  for (const char* name : kPackFlags) {
    CLI::Option& option = *command.get_option(name);
    option.description(absl::StrCat("with --pack: ", option.get_description()));
  }
  AddPlanFlags(command, flags->plan);
  command.callback([flags, &command, &exit_code] {
    flags->model.finds_params = flags->pack;
    exit_code = RunCommand([&](ExitCode& blame) { return CompileToFile(*flags, command, blame); });
  });
}

}  // namespace interp
