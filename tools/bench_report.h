// What `interp bench` measured, and how it prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/latency.h"

namespace interp {

// One number of streams and one batch.
struct BenchResult {
  int streams = 1;
  int threads = 1;    // per stream
  int64_t items = 1;  // per run
  double first_ms = 0;
  double elapsed_ms = 0;
  int64_t num_late = 0;  // with a rate: runs that were due and never began
  LatencySummary latency;

  // Runs and items that ended, per second; 0 without runs.
  double runs_per_s() const;
  double items_per_s() const;
};

struct BenchReport {
  std::string model;
  std::string scheduler;
  double duration_s = 0;
  std::optional<double> rate;  // runs per second that arrived
  bool interrupted = false;    // by the user, before the last result
  std::vector<BenchResult> results;
};

// The result of most items per second; nullptr without results.
const BenchResult* FindBest(const BenchReport& report);

std::string ToText(const BenchReport& report);
std::string ToJson(const BenchReport& report);

}  // namespace interp
