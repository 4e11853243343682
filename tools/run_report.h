// What `interp run` measured and found, and how it prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/storage/pool_ledger.h"
#include "interpreter/run/graph_stats.h"
#include "tools/boxes.h"
#include "tools/outputs.h"
#include "tools/profile.h"
#include "tools/summary.h"
#include "tools/top_values.h"

namespace interp {

class InterpreterCore;

struct RunTimes {
  double load_ms = 0;           // reading program and parameters
  double prepare_ms = 0;        // passes, plan, binding
  double first_ms = 0;          // the first run, in which kernels make their primitives
  std::vector<double> runs_ms;  // the timed runs
  // The timed runs by the clock of the devices, which is simulated where they are; of several
  // devices the sum. Empty without devices.
  std::vector<double> device_ms = {};
};

struct RunStatistics {
  double median_ms = 0;
  double min_ms = 0;
  double mean_ms = 0;
  double p99_ms = 0;  // nearest rank: of fewer than 100 runs the slowest
};
// REQUIRES: runs_ms is not empty.
RunStatistics Statistics(std::vector<double> runs_ms);

struct RunReport {
  std::string model;
  size_t num_ops = 0;  // instructions of the plan
  std::string scheduler;
  int num_workers = 1;
  int num_threads = 1;
  RunTimes times;
  uint64_t peak_bytes = 0;            // most that a run took at once, parameters and feeds apart
  uint64_t peak_variable_bytes = 0;   // the same without workspace of kernels
  uint64_t liveness_bound_bytes = 0;  // see interpreter/inspect/liveness_bound.h; 0: unknown
  std::string bound_at;               // the instruction that needs so much
  uint64_t parameter_bytes = 0;       // what was loaded
  uint64_t device_peak_bytes = 0;     // as peak_bytes, on all devices
  std::optional<GraphStats> graphs;   // see InterpreterCore::graph_stats
  std::vector<PoolStats> pools;       // see InterpreterCore::pool_stats; shown with the profile
  bool interrupted = false;           // by the user, before the last run
  std::vector<Summary> fetches;
  std::vector<TopRow> top;               // with --top
  std::optional<DrawnBoxes> boxes = {};  // with --boxes
  std::vector<Comparison> comparisons;
  const Profile* profile = nullptr;
};

// What `core` says of its last run. `parameter_bytes`: what was loaded.
RunReport MakeReport(const std::string& model, const InterpreterCore& core,
                     uint64_t parameter_bytes, const std::vector<NamedTensor>& fetched);

std::string ToText(const RunReport& report);
std::string ToJson(const RunReport& report);

}  // namespace interp
