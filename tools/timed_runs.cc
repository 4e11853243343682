#include "tools/timed_runs.h"

#include <chrono>

#include "absl/strings/str_format.h"
#include "tools/elapsed.h"
#include "tools/progress.h"

namespace interp {
namespace {

using Clock = std::chrono::steady_clock;

// The clocks of all devices together; 0 without devices.
double DeviceNowMs(const InterpreterCore& core) {
  double sum = 0;
  for (const std::shared_ptr<Device>& device : core.devices()) {
    sum += static_cast<double>(device->NowNs()) / 1e6;
  }
  return sum;
}

// What a run is watched by. One observer is called directly: it then sees what it costs itself and
// nothing more.
class Watched {
 public:
  Watched(const RunOptions& options, const std::vector<RunObserver*>& observers)
      : options_(options) {
    int count = 0;
    for (RunObserver* observer : observers) {
      if (observer == nullptr) continue;
      list_.Add(observer);
      options_.observer = ++count == 1 ? observer : &list_;
    }
  }
  const RunOptions& options() const { return options_; }

 private:
  RunOptions options_;
  ObserverList list_;
};

// Runs once; `fetched` holds the results of the run before and then of this one.
absl::Status RunOnce(InterpreterCore& core, const std::vector<Tensor>& feeds,
                     const RunOptions& options, std::vector<Tensor>& fetched, double& elapsed_ms) {
  fetched.clear();  // freeing the last results is no part of a run
  const Clock::time_point start = Clock::now();
  INTERP_ASSIGN_OR_RETURN(fetched, core.Run(feeds, options));
  elapsed_ms = MsSince(start);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> RunTimed(InterpreterCore& core,
                                             const std::vector<Tensor>& feeds,
                                             const RunCounts& counts, const RunOptions& options,
                                             const RunWatchers& watchers, RunTimes& times) {
  std::vector<Tensor> fetched;
  const Watched untimed(options, {watchers.every_run});
  const Watched timed(options, {watchers.every_run, watchers.timed_runs});
  const Watched last(options, {watchers.every_run, watchers.timed_runs, watchers.last_run});
  RunOptions first = counts.repeat == 0 ? last.options() : untimed.options();
  if (counts.repeat > 0) first.timeout = std::nullopt;
  INTERP_RETURN_IF_ERROR(RunOnce(core, feeds, first, fetched, times.first_ms));
  if (counts.repeat == 0) return fetched;
  double elapsed_ms = 0;
  for (int i = 0; i < counts.warmup; ++i) {
    INTERP_RETURN_IF_ERROR(RunOnce(core, feeds, untimed.options(), fetched, elapsed_ms));
  }
  ProgressLine progress(/*wanted=*/counts.repeat > 1);
  for (int i = 0; i < counts.repeat; ++i) {
    const double device_start_ms = DeviceNowMs(core);
    const Watched& watched = i + 1 == counts.repeat ? last : timed;
    INTERP_RETURN_IF_ERROR(RunOnce(core, feeds, watched.options(), fetched, elapsed_ms));
    times.runs_ms.push_back(elapsed_ms);
    if (!core.devices().empty()) times.device_ms.push_back(DeviceNowMs(core) - device_start_ms);
    if (!progress.IsDue(/*is_last=*/false)) continue;
    progress.Show(absl::StrFormat("run %d of %d, %.2f ms", i + 1, counts.repeat, elapsed_ms));
  }
  return fetched;
}

}  // namespace interp
