// Runs a core several times and takes the time.
#pragma once

#include <vector>

#include "core/status.h"
#include "interpreter/interpreter_core.h"
#include "tools/profile.h"
#include "tools/run_report.h"

namespace interp {

struct RunCounts {
  int warmup = 0;  // runs between the first and the timed ones
  int repeat = 0;  // timed runs
};

// Runs `core` once, then as `counts` says, and sets first_ms and runs_ms of `times`. `profile` may
// be null; it covers the timed runs, or the first when there are none. On a terminal a line counts
// the runs. Returns the fetches of the last run.
absl::StatusOr<std::vector<Tensor>> RunTimed(InterpreterCore& core,
                                             const std::vector<Tensor>& feeds,
                                             const RunCounts& counts, RunOptions options,
                                             Profile* profile, RunTimes& times);

}  // namespace interp
