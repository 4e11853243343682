// Latencies of calls, told in few numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace interp {

struct LatencyBucket {
  double from_ms = 0;
  double to_ms = 0;
  int64_t count = 0;
};

struct LatencySummary {
  int64_t count = 0;
  double mean_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  // Nearest rank.
  double p50_ms = 0;
  double p90_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  // From min_ms to max_ms, in at most kLatencyBuckets steps of equal ratio; the last one holds
  // max_ms, too. Empty without calls.
  std::vector<LatencyBucket> histogram;
};

inline constexpr int kLatencyBuckets = 16;

// All zero for no latencies.
LatencySummary SummarizeLatencies(std::vector<double> latencies_ms);

// A table of a line with a bar per bucket.
std::string FormatHistogram(const std::vector<LatencyBucket>& histogram);

}  // namespace interp
