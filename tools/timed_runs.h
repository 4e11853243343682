// Runs a core several times and takes the time.
#pragma once

#include <vector>

#include "core/status.h"
#include "interpreter/interpreter_core.h"
#include "tools/run_report.h"

namespace interp {

struct RunCounts {
  int warmup = 0;  // runs between the first and the timed ones
  int repeat = 0;  // timed runs
};

// Observers by the runs they see; any may be null.
struct RunWatchers {
  RunObserver* every_run = nullptr;
  RunObserver* timed_runs = nullptr;  // the first when there are none
  RunObserver* last_run = nullptr;
};

// Runs `core` once, then as `counts` says, and sets first_ms and runs_ms of `times`, as far as it
// comes. The time-out of `options` is not for the first run when others follow: kernels make their
// primitives in it. On a terminal a line counts the runs. Returns the fetches of the last run.
absl::StatusOr<std::vector<Tensor>> RunTimed(InterpreterCore& core,
                                             const std::vector<Tensor>& feeds,
                                             const RunCounts& counts, const RunOptions& options,
                                             const RunWatchers& watchers, RunTimes& times);

}  // namespace interp
