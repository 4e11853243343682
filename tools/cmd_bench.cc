// interp bench: latency and throughput of a program under load.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/annotate.h"
#include "core/io/npy.h"
#include "core/machine/usable_cpus.h"
#include "core/machine/usable_memory.h"
#include "interpreter/predictor.h"
#include "tools/bench_report.h"
#include "tools/commands.h"
#include "tools/core_flags.h"
#include "tools/elapsed.h"
#include "tools/feeds.h"
#include "tools/interruption.h"
#include "tools/load_generator.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/number_flag.h"
#include "tools/plan_inputs.h"
#include "tools/repeated_flag.h"
#include "tools/sizes.h"

namespace interp {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxStreams = 1024;
constexpr int64_t kMaxBatch = 1 << 20;

struct BenchFlags {
  ModelFlags model;
  FeedFlags feeds;
  std::vector<std::string> fetches;
  std::string streams = "auto";
  std::string batches;
  std::string duration = "10s";
  double rate = 0;  // 0: none
  int warmup = 1;
  bool json = false;
  PlanFlags plan;
  RunFlags run;
};

// What is measured, read and checked before anything runs.
struct Task {
  std::string path;
  CoreOptions core;
  std::optional<std::chrono::nanoseconds> timeout;
  std::chrono::nanoseconds duration;
  std::vector<int> streams;
  std::vector<int64_t> batches;  // empty: the feeds as they are
  std::vector<NamedTensor> feeds;
  std::vector<std::string> fetches;
  PlaceKind device = PlaceKind::kCpu;  // see DeviceKindOf

  size_t FeedBytes() const {
    size_t bytes = 0;
    for (const auto& [name, feed] : feeds) bytes += feed.size_bytes();
    return bytes;
  }
};

template <typename T>
absl::StatusOr<std::vector<T>> ParseCounts(const std::string& text, T most) {
  std::vector<T> counts;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    T count = 0;
    if (!absl::SimpleAtoi(part, &count) || count < 1 || count > most) {
      return InvalidArgument("expected numbers from 1 to ", most, ", as in 1,2,4, got '", text,
                             "'");
    }
    counts.push_back(count);
  }
  return counts;
}

// 1, 2, 4 ... up to the CPUs that there are, and those.
std::vector<int> StreamsToTry() {
  std::vector<int> streams;
  const int cpus = UsableCpus();
  for (int count = 1; count < cpus; count *= 2) streams.push_back(count);
  streams.push_back(cpus);
  return streams;
}

absl::Status ParseNumbers(const BenchFlags& flags, Task& task) {
  INTERP_ASSIGN_OR_RETURN(task.core, MakeCoreOptions(flags.plan, flags.run));
  // Each stream gets its share of the CPUs unless it is told.
  task.core.num_threads = flags.run.threads;
  task.core.random_seed = flags.feeds.limits.seed;
  INTERP_ASSIGN_OR_RETURN(task.timeout, ParseTimeout(flags.run.timeout));
  INTERP_ASSIGN_OR_RETURN(task.duration, Annotate(ParseDuration(flags.duration), "--duration"));
  if (flags.streams == "auto") {
    task.streams = StreamsToTry();
  } else {
    INTERP_ASSIGN_OR_RETURN(task.streams,
                            Annotate(ParseCounts<int>(flags.streams, kMaxStreams), "--streams"));
  }
  if (flags.batches.empty()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(task.batches,
                          Annotate(ParseCounts<int64_t>(flags.batches, kMaxBatch), "--batch"));
  return absl::OkStatus();
}

absl::Status ReadTensors(const BenchFlags& flags, const Model& model, Task& task) {
  INTERP_ASSIGN_OR_RETURN(task.feeds, ReadFeeds(model.program, flags.feeds));
  INTERP_RETURN_IF_ERROR(AddRandomFeeds(model.program, flags.feeds.limits.seed, task.feeds));
  AddDefaultLods(model.program, task.feeds);
  INTERP_ASSIGN_OR_RETURN(task.fetches, FetchNames(model.program, flags.fetches));
  for (const auto& [name, feed] : task.feeds) {
    if (!task.batches.empty() && CountItems(feed) != 1) {
      return InvalidArgument("--batch repeats feeds of one item, but '", name, "' has ",
                             CountItems(feed), ": ", DescribeType(feed));
    }
  }
  if (!model.compiled.has_value()) {
    INTERP_RETURN_IF_ERROR(CheckSeen(model.path, model.program, task.fetches, task.core.passes));
    return CheckNoFeedMissing(model.program, task.feeds, task.fetches, flags.plan.no_prune);
  }
  INTERP_RETURN_IF_ERROR(CheckFetched(model.compiled->main(), task.fetches));
  INTERP_ASSIGN_OR_RETURN(task.feeds, OrderFeeds(model.compiled->main(), task.feeds));
  return absl::OkStatus();
}

// `blame`: the exit code of an error.
absl::StatusOr<Task> Prepare(const BenchFlags& flags, const CLI::App& command, ExitCode& blame) {
  Task task;
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(ParseNumbers(flags, task));
  INTERP_RETURN_IF_ERROR(CheckReadAgain(flags.model.model));
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(const Model model, LoadModel(flags.model));
  task.path = model.path;
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(CheckModelFlags(flags.model, model));
  if (model.compiled.has_value()) INTERP_RETURN_IF_ERROR(CheckNoPlanFlags(command));
  task.device = DeviceKindOf(model, task.core);
  INTERP_RETURN_IF_ERROR(CheckRunFlags(command, flags.run, task.device));
  INTERP_RETURN_IF_ERROR(ReadTensors(flags, model, task));
  return task;
}

PredictorOptions OptionsOf(const BenchFlags& flags, const Task& task, int streams) {
  PredictorOptions options{.fetches = task.fetches, .num_streams = streams, .core = task.core};
  for (const NamedTensor& feed : task.feeds) options.feeds.push_back(feed.first);
  const int64_t largest = task.batches.empty() ? 0 : std::ranges::max(task.batches);
  LimitToMachine(flags.run, task.device, streams, options.core,
                 std::min(task.FeedBytes(), SIZE_MAX / kMaxBatch) * largest);
  return options;
}

absl::StatusOr<std::unique_ptr<Predictor>> MakePredictor(const BenchFlags& flags, const Task& task,
                                                         const PredictorOptions& options,
                                                         ExitCode& blame) {
  blame = ExitCode::kModelUnusable;
  std::optional<std::string> params = flags.model.params;
  if (params->empty()) params.reset();
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Predictor> predictor,
                          Predictor::Load(flags.model.model, params, options));
  NoteWhatStaysWide(task.path, task.core.passes, predictor->core().program());
  INTERP_RETURN_IF_ERROR(Annotate(predictor->core().CheckParameters(), task.path));
  return predictor;
}

absl::StatusOr<std::vector<Tensor>> Batch(const Task& task, std::optional<int64_t> batch) {
  std::vector<Tensor> feeds;
  const uint64_t most = std::min<uint64_t>(UsableMemory().value_or(kMaxArrayBytes), kMaxArrayBytes);
  if (batch.has_value() && task.FeedBytes() > most / *batch) {
    return InvalidArgument("--batch ", *batch, ": the feeds take more than ", FormatBytes(most),
                           ", expected a smaller batch");
  }
  for (const auto& [name, feed] : task.feeds) {
    if (!batch.has_value()) {
      feeds.push_back(feed);
      continue;
    }
    absl::StatusOr<Tensor> repeated = RepeatFeed(feed, *batch);
    if (!repeated.ok())
      return Annotate(repeated.status(), absl::StrCat("--batch: feed '", name, "'"));
    feeds.push_back(*std::move(repeated));
  }
  return feeds;
}

// InvalidArgument for a batch whose run would take more than the limit, by what runs of an item for
// each thread and of two take: scratch memory of threads does not grow from there. Small batches,
// which warm-up would find changed, are not looked at. `blame`: of errors of these runs, and then
// of the batch.
absl::Status CheckFits(const Task& task, int64_t batch, size_t limit, const Predictor& predictor,
                       ExitCode& blame) {
  constexpr size_t kSmallShare = 64;
  const int64_t step = std::max(predictor.core().num_threads(), 1);
  if (limit == 0 || batch <= 2 * step || task.FeedBytes() * batch < limit / kSmallShare) {
    return absl::OkStatus();
  }
  const std::unique_ptr<InterpreterCore> core = predictor.core().Clone();
  std::array<size_t, 2> peaks = {};
  for (size_t i = 0; i < peaks.size(); ++i) {
    const auto items = static_cast<int64_t>(i + 1) * step;
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> feeds, Batch(task, items));
    INTERP_RETURN_IF_ERROR(Annotate(core->CheckFeeds(feeds), task.path));
    blame = ExitCode::kRunFailed;
    INTERP_RETURN_IF_ERROR(Annotate(core->Run(feeds).status(), task.path));
    blame = ExitCode::kUsage;
    peaks[i] = core->memory().peak_bytes;
  }
  const double grown = static_cast<double>(peaks[1]) - static_cast<double>(peaks[0]);
  const double needed = static_cast<double>(peaks[0]) +
                        grown * static_cast<double>(batch - step) / static_cast<double>(step);
  if (needed <= static_cast<double>(limit)) return absl::OkStatus();
  return InvalidArgument("--batch ", batch, ": a run would take about ",
                         FormatBytes(static_cast<uint64_t>(needed)),
                         " beside its feeds, and each of ", predictor.num_streams(),
                         " streams has ", FormatBytes(limit), ", expected a smaller batch");
}

// Warms all streams up and measures. What was measured before a stop is in `result`.
absl::Status Measure(const BenchFlags& flags, const Task& task, const std::vector<Tensor>& feeds,
                     const std::stop_token& stop, Predictor& predictor, BenchResult& result) {
  const auto call = [&]() -> absl::Status {
    return predictor.Run(feeds, {.timeout = task.timeout, .stop = stop}).status();
  };
  const Clock::time_point start = Clock::now();
  INTERP_RETURN_IF_ERROR(predictor.Run(feeds, {.stop = stop}).status());
  result.first_ms = MsSince(start);
  LoadOptions options{.num_threads = predictor.num_streams(), .stop = stop};
  INTERP_RETURN_IF_ERROR(WarmUp(options, flags.warmup, call));
  options.duration = task.duration;
  options.seed = flags.feeds.limits.seed;
  if (flags.rate > 0) options.rate = flags.rate;
  INTERP_ASSIGN_OR_RETURN(LoadResult load, GenerateLoad(options, call));
  result.elapsed_ms = load.elapsed_ms;
  result.num_late = load.num_late;
  result.latency = SummarizeLatencies(std::move(load.latencies_ms));
  return absl::OkStatus();
}

// Every number of streams with every batch, one after the other, into `report`.
absl::Status MeasureAll(const BenchFlags& flags, const Task& task, const std::stop_token& stop,
                        BenchReport& report, ExitCode& blame) {
  std::vector<std::optional<int64_t>> batches(task.batches.begin(), task.batches.end());
  if (batches.empty()) batches.emplace_back();
  for (const int streams : task.streams) {
    const PredictorOptions options = OptionsOf(flags, task, streams);
    INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Predictor> predictor,
                            MakePredictor(flags, task, options, blame));
    report.scheduler = std::string(Name(predictor->core().scheduler()));
    for (const std::optional<int64_t>& batch : batches) {
      blame = ExitCode::kUsage;
      const size_t limit = predictor->core().plan().options.place.on_host()
                               ? options.core.max_memory_bytes
                               : size_t{0};
      INTERP_RETURN_IF_ERROR(CheckFits(task, batch.value_or(1), limit, *predictor, blame));
      INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> feeds, Batch(task, batch));
      INTERP_RETURN_IF_ERROR(Annotate(predictor->core().CheckFeeds(feeds), task.path));
      blame = ExitCode::kRunFailed;
      BenchResult result{.streams = predictor->num_streams(),
                         .threads = predictor->core().num_threads(),
                         .items = feeds.empty() ? 1 : CountItems(feeds[0]),
                         .latency = {}};
      const absl::Status measured = Measure(flags, task, feeds, stop, *predictor, result);
      if (result.latency.count > 0) report.results.push_back(std::move(result));
      if (stop.stop_requested()) return absl::CancelledError("interrupted");
      if (!measured.ok()) return Annotate(measured, task.path);
    }
    // A program that writes parameters has one stream, however many are asked for.
    if (predictor->num_streams() < streams) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Bench(const BenchFlags& flags, const CLI::App& command, ExitCode& blame) {
  INTERP_ASSIGN_OR_RETURN(const Task task, Prepare(flags, command, blame));
  BenchReport report;
  report.model = task.path;
  report.duration_s = std::chrono::duration<double>(task.duration).count();
  if (flags.rate > 0) report.rate = flags.rate;
  std::stop_source stop;
  absl::Status measured;
  {
    const Interruption interruption([&] { stop.request_stop(); });
    measured = MeasureAll(flags, task, stop.get_token(), report, blame);
  }
  report.interrupted = stop.stop_requested();
  if (!measured.ok() && !report.interrupted) return measured;
  if (report.interrupted && report.results.empty()) {
    blame = ExitCode::kInterrupted;
    return absl::CancelledError("interrupted before the first run");
  }
  return Show(flags.json ? ToJson(report) : ToText(report),
              report.interrupted ? ExitCode::kInterrupted : ExitCode::kOk);
}

}  // namespace

void AddBenchCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App& command = *app.add_subcommand("bench", "measure latency and throughput under load");
  flags->model.finds_params = true;
  flags->model.memory = ParamMemory::kFile;
  AddModelFlags(command, flags->model);
  AddFeedFlags(command, flags->feeds);
  AddRepeatedFlag(command, "--fetch", flags->fetches,
                  "variables to fetch; default: what the program fetches");
  command
      .add_option("--streams", flags->streams,
                  "runs side by side, as in 4 or 1,2,4; auto: 1, 2, 4 ... usable CPUs")
      ->capture_default_str();
  command.add_option("--batch", flags->batches,
                     "items per run, as in 1,2,4,8: feeds of one item are repeated");
  command.add_option("--duration", flags->duration, "of each measurement, as in 10s or 500ms")
      ->capture_default_str();
  command
      .add_option("--rate", flags->rate,
                  "runs per second that arrive at random; without it a stream begins a run when "
                  "the last one has ended")
      ->check(Real(0, /*least_included=*/false));
  command.add_option("--warmup", flags->warmup, "runs of each stream before it is measured")
      ->transform(Whole(0, 1'000'000))
      ->capture_default_str();
  command.add_flag("--json", flags->json, "print one JSON object");
  AddPlanFlags(command, flags->plan);
  AddRunFlags(command, flags->run);
  command.callback([flags, &command, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return Bench(*flags, command, blame); });
  });
}

}  // namespace interp
