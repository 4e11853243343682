#include "tools/load_generator.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/catching.h"

namespace interp {
namespace {

using Clock = std::chrono::steady_clock;

double Ms(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// When calls arrive. Thread-safe.
class Arrivals {
 public:
  Arrivals(const LoadOptions& options, Clock::time_point start)
      : rate_(options.rate), engine_(options.seed), next_(start), end_(start + options.duration) {}

  // When the next call arrives, nullopt where none does: now without a rate.
  std::optional<Clock::time_point> Next() {
    if (!rate_.has_value()) {
      const Clock::time_point now = Clock::now();
      return now < end_ ? std::optional(now) : std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    const Clock::time_point arrival = next_;
    if (arrival >= end_) return std::nullopt;
    const std::chrono::duration<double> gap(std::exponential_distribution<double>(*rate_)(engine_));
    // No gap is longer than the rest of the time, which a count of nanoseconds may not hold.
    next_ += std::chrono::duration_cast<Clock::duration>(
        std::min<std::chrono::duration<double>>(gap, end_ - arrival));
    return arrival;
  }

  // How many calls would have arrived still, drawn at once: there may be billions.
  int64_t CountRest() {
    if (!rate_.has_value() || next_ >= end_) return 0;
    const double expected = *rate_ * std::chrono::duration<double>(end_ - next_).count();
    if (expected > 1e6) return std::llround(std::min(expected, 1e18));
    return 1 + (expected > 0 ? std::poisson_distribution<int64_t>(expected)(engine_) : 0);
  }

  // Whether what has arrived can no longer begin in time.
  bool TooLate() const { return rate_.has_value() && Clock::now() >= end_; }

 private:
  const std::optional<double> rate_;
  std::mutex mutex_;  // guards what follows
  std::mt19937_64 engine_;
  Clock::time_point next_;
  const Clock::time_point end_;
};

// Returns at `time`, or where a stop is requested before.
void SleepUntil(Clock::time_point time, const std::stop_token& stop) {
  if (time <= Clock::now()) return;
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_until(lock, stop, time, [] { return false; });
}

// What one thread does and finds.
struct Caller {
  std::vector<double> latencies_ms;
  Clock::time_point last_end;
  int64_t num_late = 0;
  absl::Status status;

  void Run(Arrivals& arrivals, std::stop_source& stop, const std::function<absl::Status()>& call) {
    while (!stop.stop_requested()) {
      const std::optional<Clock::time_point> arrival = arrivals.Next();
      if (!arrival.has_value()) return;
      SleepUntil(*arrival, stop.get_token());
      if (stop.stop_requested()) return;
      if (arrivals.TooLate()) {
        ++num_late;
        return;
      }
      status = call();
      last_end = Clock::now();
      if (!status.ok()) {
        stop.request_stop();
        return;
      }
      latencies_ms.push_back(Ms(last_end - *arrival));
    }
  }
};

// `work` of 0 to count-1, each on a thread of its own. Requests a stop where the system gives
// fewer.
absl::Status OnThreads(int count, std::stop_source& stop, const std::function<void(int)>& work) {
  std::vector<std::jthread> threads;
  const absl::Status started = Catching([&] {
    for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
    return absl::OkStatus();
  });
  if (started.ok()) return started;
  stop.request_stop();
  return Annotate(started, absl::StrCat("caller ", threads.size() + 1, " of ", count));
}

LoadResult Collect(absl::Span<const Caller> callers, Clock::time_point start) {
  LoadResult result;
  for (const Caller& caller : callers) {
    result.latencies_ms.insert(result.latencies_ms.end(), caller.latencies_ms.begin(),
                               caller.latencies_ms.end());
    if (!caller.latencies_ms.empty()) {
      result.elapsed_ms = std::max(result.elapsed_ms, Ms(caller.last_end - start));
    }
    result.num_late += caller.num_late;
  }
  return result;
}

}  // namespace

absl::StatusOr<LoadResult> GenerateLoad(const LoadOptions& options,
                                        const std::function<absl::Status()>& call) {
  std::stop_source stop;
  const std::stop_callback forward(options.stop, [&] { stop.request_stop(); });
  const Clock::time_point start = Clock::now();
  Arrivals arrivals(options, start);
  std::vector<Caller> callers(options.num_threads);
  INTERP_RETURN_IF_ERROR(
      OnThreads(options.num_threads, stop, [&](int i) { callers[i].Run(arrivals, stop, call); }));
  LoadResult result = Collect(callers, start);
  if (options.stop.stop_requested()) return result;
  // Calls that arrive by themselves take the whole time, however early the last one ended.
  if (options.rate.has_value() && !result.latencies_ms.empty()) {
    result.elapsed_ms = std::max(result.elapsed_ms, Ms(options.duration));
  }
  for (const Caller& caller : callers) INTERP_RETURN_IF_ERROR(caller.status);
  result.num_late += arrivals.CountRest();
  return result;
}

absl::Status WarmUp(const LoadOptions& options, int times,
                    const std::function<absl::Status()>& call) {
  std::stop_source stop;
  const std::stop_callback forward(options.stop, [&] { stop.request_stop(); });
  std::vector<absl::Status> statuses(options.num_threads);
  INTERP_RETURN_IF_ERROR(OnThreads(options.num_threads, stop, [&](int thread) {
    for (int i = 0; i < times && statuses[thread].ok() && !stop.stop_requested(); ++i) {
      statuses[thread] = call();
    }
  }));
  for (const absl::Status& status : statuses) INTERP_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace interp
