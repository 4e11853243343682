// Calls a function over and over on several threads and takes the time of each call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/status.h"

namespace interp {

struct LoadOptions {
  int num_threads = 1;
  std::chrono::nanoseconds duration = std::chrono::seconds(10);
  // Calls per second that arrive whether or not earlier ones are done, after random gaps of
  // exponential distribution. nullopt: each thread begins a call when its last one has ended.
  std::optional<double> rate = std::nullopt;
  uint64_t seed = 0;          // of the gaps
  std::stop_token stop = {};  // ends everything early
};

struct LoadResult {
  std::vector<double> latencies_ms;  // one per call that ended, in no order
  // From the first call's start to the last one's end; with a rate `duration` at least.
  double elapsed_ms = 0;
  int64_t num_late = 0;  // with a rate: calls that arrived in time and never began
};

// Begins no call after `duration`. A call's latency starts where it arrived: with a rate the time
// that it waited for a thread counts. The first error of `call` ends everything and is returned,
// but for what it returns once a stop was requested. `call` runs on any thread.
absl::StatusOr<LoadResult> GenerateLoad(const LoadOptions& options,
                                        const std::function<absl::Status()>& call);

// Calls it `times` times on each of options.num_threads threads. Errors as above.
absl::Status WarmUp(const LoadOptions& options, int times,
                    const std::function<absl::Status()>& call);

}  // namespace interp
