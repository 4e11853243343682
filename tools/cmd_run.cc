// interp run: feeds a program, runs it, shows, writes and compares what it gives.
// Long because runs have many flags, each with a few lines of its own.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "core/io/npz.h"
#include "core/resource/random_state_file.h"
#include "interpreter/analysis/graphs.h"
#include "interpreter/interpreter_core.h"
#include "tools/boxes.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/elapsed.h"
#include "tools/feeds.h"
#include "tools/flag_effects.h"
#include "tools/interruption.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/number_flag.h"
#include "tools/outputs.h"
#include "tools/plan_inputs.h"
#include "tools/ranks.h"
#include "tools/repeated_flag.h"
#include "tools/run_report.h"
#include "tools/run_watch.h"
#include "tools/saved_parameters.h"
#include "tools/timed_runs.h"

namespace interp {
namespace {

using Clock = std::chrono::steady_clock;

struct RunCommandFlags {
  ModelFlags model;
  FeedFlags feeds;
  std::vector<std::string> fetches;
  std::string out;
  std::string save;
  std::string random_state;
  RunCounts counts;
  int top = 0;  // 0: not asked for
  std::string labels;
  std::string boxes;
  std::string expect;
  Tolerance tolerance;
  WatchFlags watch;
  bool json = false;
  PlanFlags plan;
  RunFlags run;
  RankFlags ranks;
  std::shared_ptr<Rings> rings;  // null: alone
};

// What is asked for, read and checked against the program before anything runs.
struct Inputs {
  std::vector<NamedTensor> feeds;
  std::vector<std::string> labels;
  std::optional<BoxesRequest> boxes;
  std::vector<NamedTensor> expected;
  std::vector<std::string> fetches;
  ParametersToSave saved;
};

// What to fetch: what the flags say, else what the program does, and all that is to be drawn or
// compared.
absl::StatusOr<std::vector<std::string>> ChooseFetches(const Model& model,
                                                       const RunCommandFlags& flags,
                                                       const Inputs& inputs) {
  const Program& program = model.program;
  INTERP_ASSIGN_OR_RETURN(std::vector<std::string> fetches, FetchNames(program, flags.fetches));
  const auto add = [&](const std::string& name) {
    if (std::find(fetches.begin(), fetches.end(), name) == fetches.end()) fetches.push_back(name);
  };
  if (inputs.boxes.has_value()) add(inputs.boxes->variable);
  for (const NamedTensor& tensor : inputs.expected) {
    INTERP_RETURN_IF_ERROR(
        Annotate(CheckName(program, tensor.first), absl::StrCat("--expect ", flags.expect)));
    add(tensor.first);
  }
  const bool seen = !fetches.empty() || !flags.save.empty() || flags.plan.no_prune ||
                    !flags.run.file_folder.empty();
  if (!seen && !model.compiled.has_value()) {
    INTERP_RETURN_IF_ERROR(
        CheckFetchesAny(flags.model.model, fetches, ", or save its parameters with --save"));
  }
  return fetches;
}

// The feeds, and what is to be drawn over one of them.
absl::Status ReadFeedsAndBoxes(const Program& program, const RunCommandFlags& flags,
                               Inputs& inputs) {
  std::vector<FedPicture> pictures;
  INTERP_ASSIGN_OR_RETURN(inputs.feeds, ReadFeeds(program, flags.feeds, &pictures));
  if (flags.boxes.empty()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(inputs.boxes,
                          Annotate(ReadBoxesRequest(program, flags.boxes, std::move(pictures)),
                                   absl::StrCat("--boxes ", flags.boxes)));
  return absl::OkStatus();
}

absl::StatusOr<Inputs> ReadInputs(const Model& model, const RunCommandFlags& flags) {
  Inputs inputs;
  INTERP_RETURN_IF_ERROR(ReadFeedsAndBoxes(model.program, flags, inputs));
  INTERP_ASSIGN_OR_RETURN(
      inputs.saved,
      Annotate(ChooseParametersToSave(flags.save, model.program, MadeInRuns(model)), "--save"));
  if (!flags.labels.empty()) {
    INTERP_ASSIGN_OR_RETURN(inputs.labels, Annotate(ReadLabels(flags.labels), "--labels"));
  }
  if (!flags.expect.empty()) {
    INTERP_ASSIGN_OR_RETURN(const size_t max_bytes, MaxFileBytes(flags.feeds.limits));
    INTERP_ASSIGN_OR_RETURN(inputs.expected,
                            Annotate(ReadNpz(flags.expect, max_bytes), "--expect"));
    if (inputs.expected.empty()) return InvalidArgument("--expect: there are no arrays in it");
  }
  INTERP_ASSIGN_OR_RETURN(inputs.fetches, ChooseFetches(model, flags, inputs));
  if (!model.compiled.has_value()) {
    INTERP_RETURN_IF_ERROR(
        CheckNoFeedMissing(model.program, inputs.feeds, inputs.fetches, flags.plan.no_prune));
    return inputs;
  }
  const Plan& plan = model.compiled->main();
  INTERP_RETURN_IF_ERROR(CheckFetched(plan, inputs.fetches));
  INTERP_ASSIGN_OR_RETURN(inputs.feeds, OrderFeeds(plan, inputs.feeds));
  return inputs;
}

std::vector<Tensor> Tensors(const std::vector<NamedTensor>& named) {
  std::vector<Tensor> tensors;
  for (const NamedTensor& tensor : named) tensors.push_back(tensor.second);
  return tensors;
}

std::vector<std::string> Names(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.first);
  return names;
}

ExitCode ShowReport(const RunCommandFlags& flags, const RunReport& report) {
  const bool same = std::all_of(report.comparisons.begin(), report.comparisons.end(),
                                [](const Comparison& comparison) { return comparison.ok(); });
  return Show(flags.json ? ToJson(report) : ToText(report),
              same ? ExitCode::kOk : ExitCode::kMismatch);
}

// A plan may fetch more than is wanted.
std::vector<NamedTensor> NameFetches(const std::vector<std::string>& names,
                                     const std::vector<Tensor>& tensors,
                                     const std::vector<std::string>& wanted) {
  std::vector<NamedTensor> fetched;
  for (const std::string& name : wanted) {
    const auto column = std::find(names.begin(), names.end(), name) - names.begin();
    fetched.emplace_back(name, tensors[column]);
  }
  return fetched;
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> MakeCore(Model& model, const Inputs& inputs,
                                                          const CoreOptions& options) {
  if (!model.compiled.has_value()) {
    return InterpreterCore::Create(std::move(model.program), Names(inputs.feeds), inputs.fetches,
                                   model.scope, options);
  }
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, TakeCompiled(model));
  return InterpreterCore::Create(std::move(compiled), model.scope, options);
}

// Sets where random numbers come from: what the file of --random-state says, if there is one yet.
absl::Status StartRandom(const RunCommandFlags& flags, const CLI::App& command,
                         InterpreterCore& core) {
  if (flags.random_state.empty()) return absl::OkStatus();
  const absl::StatusOr<RandomState> state = ReadRandomState(flags.random_state);
  if (absl::IsNotFound(state.status())) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(state.status());
  if (command.count("--seed") > 0 && state->seed != flags.feeds.limits.seed) {
    return InvalidArgument("'", flags.random_state, "' goes on with seed ", state->seed,
                           ", but --seed is ", flags.feeds.limits.seed);
  }
  core.SetRandomState(*state);
  return absl::OkStatus();
}

absl::Status KeepRandom(const RunCommandFlags& flags, const InterpreterCore& core) {
  if (flags.random_state.empty()) return absl::OkStatus();
  return WriteRandomState(flags.random_state, core.random_state());
}

// What cannot be written is said before hours of runs.
absl::Status CheckResultsWritable(const RunCommandFlags& flags, const Inputs& inputs) {
  const std::string boxes = inputs.boxes.has_value() ? inputs.boxes->path : "";
  if (!flags.out.empty()) {
    INTERP_RETURN_IF_ERROR(Annotate(CheckOutputsWritable(flags.out, inputs.fetches), "--out"));
  }
  for (const auto& [flag, path] :
       {std::pair("--save", &flags.save), std::pair("--trace", &flags.watch.trace),
        std::pair("--random-state", &flags.random_state), std::pair("--boxes", &boxes)}) {
    if (path->empty()) continue;
    INTERP_RETURN_IF_ERROR(Annotate(CheckWritable(*path), flag));
  }
  return absl::OkStatus();
}

// What was measured before Ctrl-C. There are no results: a run was cut short.
ExitCode ShowInterrupted(const RunCommandFlags& flags, const Model& model,
                         const InterpreterCore& core, const RunTimes& times) {
  const std::string runs =
      absl::StrCat(" after ", times.runs_ms.size(), " of ", flags.counts.repeat, " timed runs");
  const absl::Status status = absl::CancelledError(absl::StrCat(model.path, ": interrupted",
                                                                flags.counts.repeat > 0 ? runs : "",
                                                                "; no results were written"));
  if (times.runs_ms.empty()) return Fail(ExitCode::kInterrupted, status);
  RunReport report = MakeReport(model.path, core, model.loaded.size_bytes, {});
  report.times = times;
  report.interrupted = true;
  const ExitCode shown = Show(flags.json ? ToJson(report) : ToText(report));
  return shown == ExitCode::kOk ? Fail(ExitCode::kInterrupted, status) : shown;
}

// The files asked for.
absl::Status WriteResults(const RunCommandFlags& flags, const Model& model, const Inputs& inputs,
                          const std::vector<NamedTensor>& fetched, RunReport& report) {
  if (!flags.out.empty()) {
    INTERP_RETURN_IF_ERROR(Annotate(WriteOutputs(flags.out, fetched), "--out"));
  }
  INTERP_RETURN_IF_ERROR(Annotate(SaveParameters(inputs.saved, *model.scope), "--save"));
  if (!inputs.boxes.has_value()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(report.boxes,
                          Annotate(DrawBoxes(*inputs.boxes, fetched, inputs.labels), "--boxes"));
  return absl::OkStatus();
}

// Runs the prepared core and reports.
absl::StatusOr<ExitCode> RunAndReport(const RunCommandFlags& flags, const RunOptions& run_options,
                                      const Model& model, const Inputs& inputs,
                                      InterpreterCore& core, RunWatch& watch, RunTimes times,
                                      Ranks& ranks) {
  auto interruption = std::make_unique<Interruption>([&] { core.Cancel(); });
  const absl::StatusOr<std::vector<Tensor>> tensors =
      RunTimed(core, Tensors(inputs.feeds), flags.counts, run_options, watch.watchers(), times);
  const bool interrupted = interruption->happened() && absl::IsCancelled(tensors.status());
  interruption.reset();
  if (interrupted) return ShowInterrupted(flags, model, core, times);
  // Of a run that failed, too: it shows how far it came.
  const absl::Status traced = watch.WriteTrace();
  INTERP_RETURN_IF_ERROR(Annotate(tensors.status(), model.path));
  ranks.RunIsDone();
  INTERP_RETURN_IF_ERROR(Annotate(traced, "--trace"));
  INTERP_RETURN_IF_ERROR(Annotate(KeepRandom(flags, core), "--random-state"));
  const std::vector<NamedTensor> fetched =
      NameFetches(core.plan().fetches, *tensors, inputs.fetches);
  RunReport report = MakeReport(model.path, core, model.loaded.size_bytes, fetched);
  report.times = std::move(times);
  for (const NamedTensor& tensor : fetched) {
    if (flags.top == 0) break;
    for (TopRow& row : FindTop(tensor, flags.top, inputs.labels)) report.top.push_back(row);
  }
  report.comparisons = CompareAll(fetched, inputs.expected, flags.tolerance);
  INTERP_RETURN_IF_ERROR(WriteResults(flags, model, inputs, fetched, report));
  report.profile = watch.FinishProfile();
  return ShowReport(flags, report);
}

// No result takes the place of what the run reads, but that --save may write --params anew.
absl::Status CheckFiles(const RunCommandFlags& flags, const Model& model, const Inputs& inputs) {
  std::vector<NamedFile> outputs;
  for (std::string& file : FilesOfOutputs(flags.out, inputs.fetches)) {
    outputs.push_back({"--out", std::move(file)});
  }
  const auto results = static_cast<std::ptrdiff_t>(outputs.size());
  const bool is_folder = !absl::EndsWith(flags.out, ".npz");
  outputs.insert(outputs.end(), {{"--out", is_folder ? flags.out : ""},
                                 {"--trace", flags.watch.trace},
                                 {"--random-state", flags.random_state},
                                 {"--boxes", inputs.boxes.has_value() ? inputs.boxes->path : ""}});
  const ModelInputs files = InputsOf(flags.model);
  INTERP_RETURN_IF_ERROR(CheckDistinct(outputs, FilesOfParameters(files.params, model)));
  std::vector<NamedFile> read = {files.model,
                                 {"--compiled-from", flags.model.compiled_from},
                                 {"--expect", flags.expect},
                                 {"--labels", flags.labels}};
  for (std::string& file : FilesOfFeeds(model.program, flags.feeds)) {
    read.push_back({"--feed", std::move(file)});
  }
  outputs.insert(outputs.begin() + results, {"--save", flags.save});
  return CheckDistinct(outputs, read);
}

absl::Status CheckEffects(const RunCommandFlags& flags, const CLI::App& command, const Model& model,
                          const CoreOptions& options) {
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command, {"--rtol", "--atol"}, !flags.expect.empty(), "without --expect"));
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--labels"}, flags.top > 0 || !flags.boxes.empty(),
                                     "without --top or --boxes"));
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command, {"--warmup"}, flags.counts.repeat > 0, "without --repeat"));
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--max-file-memory"},
                                     !flags.feeds.feeds.empty() || !flags.expect.empty(),
                                     "without --feed or --expect"));
  return CheckRunFlags(command, flags.run, DeviceKindOf(model, options));
}

// Once for all, whatever the number of ops.
void WarnOfFallbacks(const Plan& plan, bool graphs) {
  if (!plan.fallbacks.empty()) {
    Warn(absl::StrCat("no kernel for the device, run on the host: ",
                      absl::StrJoin(plan.fallbacks, " ")));
  }
  const std::vector<std::string> in_no_graph =
      graphs ? TypesInNoGraph(plan) : std::vector<std::string>();
  if (!in_no_graph.empty()) {
    Warn(absl::StrCat("in no CUDA graph: ", absl::StrJoin(in_no_graph, ", ")));
  }
}

// All that a run takes.
struct Prepared {
  Model model;
  Inputs inputs;
  RunOptions options;
  std::optional<std::chrono::nanoseconds> stall_time;
  std::unique_ptr<InterpreterCore> core;
  RunTimes times;
};

// Makes the core, and checks against it what it is to be run with. `blame`: the exit code of an
// error.
absl::Status PrepareCore(const RunCommandFlags& flags, const CLI::App& command,
                         const CoreOptions& options, Prepared& run, ExitCode& blame) {
  const Clock::time_point start = Clock::now();
  absl::StatusOr<std::unique_ptr<InterpreterCore>> core = MakeCore(run.model, run.inputs, options);
  // What is not found is a fetch that has no value.
  blame = absl::IsNotFound(core.status())            ? ExitCode::kUsage
          : absl::IsResourceExhausted(core.status()) ? ExitCode::kRunFailed
                                                     : ExitCode::kModelUnusable;
  if (!core.ok()) return Annotate(core.status(), run.model.path);
  run.core = *std::move(core);
  NoteWhatStaysWide(run.model.path, options.passes, run.core->program());
  INTERP_RETURN_IF_ERROR(Annotate(run.core->CheckParameters(), run.model.path));
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(Annotate(run.core->CheckFeeds(Tensors(run.inputs.feeds)), run.model.path));
  INTERP_RETURN_IF_ERROR(Annotate(StartRandom(flags, command, *run.core), "--random-state"));
  run.times.prepare_ms = MsSince(start);
  return absl::OkStatus();
}

// Everything that comes before the first run. `blame`: the exit code of an error.
absl::StatusOr<Prepared> Prepare(const RunCommandFlags& flags, const CLI::App& command,
                                 ExitCode& blame) {
  Prepared run;
  blame = ExitCode::kUsage;
  PlanFlags plan = flags.plan;
  plan.keeps_state = !flags.save.empty();
  INTERP_ASSIGN_OR_RETURN(CoreOptions options, MakeCoreOptions(plan, flags.run));
  options.random_seed = flags.feeds.limits.seed;
  options.rings = flags.rings;
  INTERP_ASSIGN_OR_RETURN(run.options.timeout, ParseTimeout(flags.run.timeout));
  INTERP_ASSIGN_OR_RETURN(run.stall_time, StallTime(flags.watch));
  blame = ExitCode::kModelUnusable;
  const Clock::time_point start = Clock::now();
  INTERP_ASSIGN_OR_RETURN(run.model, LoadModel(flags.model));
  run.times.load_ms = MsSince(start);
  if (!run.model.note.empty()) {
    Note(absl::StrCat(run.model.path, ": ", run.model.note));
  }
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(CheckModelFlags(flags.model, run.model));
  if (run.model.compiled.has_value()) INTERP_RETURN_IF_ERROR(CheckNoPlanFlags(command));
  INTERP_ASSIGN_OR_RETURN(run.inputs, ReadInputs(run.model, flags));
  INTERP_RETURN_IF_ERROR(CheckEffects(flags, command, run.model, options));
  if (flags.top > 0) INTERP_RETURN_IF_ERROR(CheckTop(run.model.program, run.inputs.fetches));
  INTERP_RETURN_IF_ERROR(CheckFiles(flags, run.model, run.inputs));
  LimitToMachine(flags.run, DeviceKindOf(run.model, options), /*side_by_side=*/1, options);
  blame = ExitCode::kRunFailed;
  INTERP_RETURN_IF_ERROR(CheckResultsWritable(flags, run.inputs));
  INTERP_RETURN_IF_ERROR(PrepareCore(flags, command, options, run, blame));
  return run;
}

absl::StatusOr<ExitCode> Run(const RunCommandFlags& flags, const CLI::App& command, Ranks& ranks,
                             ExitCode& blame) {
  INTERP_ASSIGN_OR_RETURN(Prepared run, Prepare(flags, command, blame));
  WarnOfFallbacks(run.core->plan(), flags.run.cuda_graph);
  ranks.WarnOfHosts(run.core->plan().options.place.kind);
  RunWatch watch(flags.watch, run.stall_time, *run.core, flags.rings.get());
  blame = ExitCode::kRunFailed;
  return RunAndReport(flags, run.options, run.model, run.inputs, *run.core, watch,
                      std::move(run.times), ranks);
}

// The same for one of several processes. Drawn pictures are rank 0's.
ExitCode RunRank(RunCommandFlags& flags, const CLI::App& command) {
  return AsRank(flags.ranks, &flags.plan.place,
                [&](Ranks& ranks, ExitCode& blame) -> absl::StatusOr<ExitCode> {
                  INTERP_RETURN_IF_ERROR(ranks.CheckOwn("--random-state", flags.random_state));
                  ranks.ForReading({&flags.model.model, &flags.model.params, &flags.expect,
                                    &flags.random_state});
                  ranks.ForReading(flags.feeds.feeds);
                  ranks.ForWriting({&flags.out, &flags.save, &flags.watch.trace, &flags.boxes});
                  if (ranks.rank() > 0) flags.labels.clear();
                  flags.rings = ranks.rings();
                  return Run(flags, command, ranks, blame);
                });
}

void AddExpectFlags(CLI::App& command, RunCommandFlags& flags) {
  command.add_option("--expect", flags.expect, "compare with the arrays of this .npz");
  command.add_option("--rtol", flags.tolerance.rtol, "relative tolerance of --expect")
      ->check(Real(0, /*least_included=*/true))
      ->capture_default_str();
  command.add_option("--atol", flags.tolerance.atol, "absolute tolerance of --expect")
      ->check(Real(0, /*least_included=*/true))
      ->capture_default_str();
}

}  // namespace

void AddRunCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<RunCommandFlags>();
  CLI::App& command = *app.add_subcommand("run", "run a program");
  flags->model.finds_params = true;
  flags->model.memory = ParamMemory::kFile;
  AddModelFlags(command, flags->model);
  AddFeedFlags(command, flags->feeds);
  command.add_option("--random-state", flags->random_state,
                     "go on with the random numbers where this file says, and keep there where "
                     "they end; made when missing");
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch, any of the program's, as in a,b; repeatable; default: what "
                  "the program fetches");
  command.add_option("--top", flags->top, "show the N largest values of each row of the fetches")
      ->transform(Whole(1, 1'000'000));
  command.add_option("--boxes", flags->boxes,
                     "draw detections, a variable of rows label, score, x0, y0, x1, y1, over the "
                     "picture that is fed, as in VARIABLE=found.png,threshold=0.5");
  command.add_option("--labels", flags->labels, "names for --top and --boxes, one a line");
  command.add_option("--out", flags->out, "write the fetches to file.npz, or as .npy to a folder");
  command.add_option("--save", flags->save,
                     "write all persistable tensors after the last run to file.pdiparams or "
                     "file.npz");
  command.add_option("--repeat", flags->counts.repeat, "timed runs after the first")
      ->transform(Whole(0, 100'000'000));
  command.add_option("--warmup", flags->counts.warmup, "runs between the first and the timed ones")
      ->transform(Whole(0, 100'000'000));
  AddExpectFlags(command, *flags);
  command.add_flag("--json", flags->json, "print one JSON object");
  AddPlanFlags(command, flags->plan);
  AddRunFlags(command, flags->run);
  AddWatchFlags(command, flags->watch);
  AddRankFlags(command, flags->ranks);
  command.callback([flags, &command, &exit_code] { exit_code = RunRank(*flags, command); });
}

}  // namespace interp
