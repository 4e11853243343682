// TimesOfJobs: when the jobs of a pipeline ran, and how long its stages waited.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/place.h"
#include "core/program.h"
#include "interpreter/inspect/trace.h"
#include "interpreter/plan/plan.h"

namespace interp {

struct JobTime {
  std::string name;  // "F0"
  int32_t stage = 0;
  int64_t start_ns = 0;  // of its first kernel
  int64_t end_ns = 0;
};

struct StageTime {
  Place place;
  int64_t busy_ns = 0;  // within PipelineTimes::start_ns and end_ns
};

struct PipelineTimes {
  // On the clock of simulated devices, from when the first of them began the run; else on the
  // host's, from when the run began.
  bool simulated = false;
  std::vector<JobTime> jobs;  // by start
  std::vector<StageTime> stages;
  int64_t start_ns = 0;  // of the first job
  int64_t end_ns = 0;    // of the last
  // The share of the time between start and end in which stages wait, of all together.
  double bubble = 0;
};

// Of the run that `trace` is of. Where stages are on devices, kernels there count, and neither
// copies nor what the host does; else the instructions of the host. The update is no job. Nothing
// when ops of the program have no jobs (passes/train/micro_batches.h) or none of them has run.
std::optional<PipelineTimes> TimesOfJobs(const RunTrace& trace, const Plan& plan,
                                         const Program& program);

// From the device clock of a simulated device's trace to the time of the earliest one, which all
// share. REQUIRES: `device` is of `trace`.
int64_t SimulatedOffsetNs(const RunTrace& trace, const RunTrace::OnDevice& device);

}  // namespace interp
