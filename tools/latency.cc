#include "tools/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/table.h"

namespace interp {
namespace {

std::vector<LatencyBucket> Histogram(const std::vector<double>& sorted_ms) {
  const double low = sorted_ms.front();
  const double high = sorted_ms.back();
  if (low <= 0 || low == high) return {{low, high, static_cast<int64_t>(sorted_ms.size())}};
  const double ratio = std::pow(high / low, 1.0 / kLatencyBuckets);
  std::vector<LatencyBucket> buckets;
  auto from = sorted_ms.begin();
  for (int i = 0; i < kLatencyBuckets; ++i) {
    const double begin = i == 0 ? low : buckets.back().to_ms;
    const bool last = i + 1 == kLatencyBuckets;
    const double end = last ? high : low * std::pow(ratio, i + 1);
    const auto to = last ? sorted_ms.end() : std::lower_bound(from, sorted_ms.end(), end);
    buckets.push_back({begin, end, to - from});
    from = to;
  }
  return buckets;
}

}  // namespace

LatencySummary SummarizeLatencies(std::vector<double> latencies_ms) {
  if (latencies_ms.empty()) return {};
  std::sort(latencies_ms.begin(), latencies_ms.end());
  const auto n = static_cast<double>(latencies_ms.size());
  const auto percentile = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * n));
    return latencies_ms[std::max<size_t>(rank, 1) - 1];
  };
  return {.count = std::ssize(latencies_ms),
          .mean_ms = std::accumulate(latencies_ms.begin(), latencies_ms.end(), 0.0) / n,
          .min_ms = latencies_ms.front(),
          .max_ms = latencies_ms.back(),
          .p50_ms = percentile(0.50),
          .p90_ms = percentile(0.90),
          .p95_ms = percentile(0.95),
          .p99_ms = percentile(0.99),
          .histogram = Histogram(latencies_ms)};
}

std::string FormatHistogram(const std::vector<LatencyBucket>& histogram) {
  constexpr int64_t kWidth = 40;
  int64_t most = 1;
  for (const LatencyBucket& bucket : histogram) most = std::max(most, bucket.count);
  std::vector<std::vector<std::string>> rows = {{"from ms", "to ms", "runs", ""}};
  for (const LatencyBucket& bucket : histogram) {
    // Whatever was seen is seen in the picture.
    const int64_t width = (bucket.count * kWidth + most - 1) / most;
    rows.push_back({absl::StrFormat("%.3f", bucket.from_ms), absl::StrFormat("%.3f", bucket.to_ms),
                    absl::StrCat(bucket.count), std::string(width, '#')});
  }
  return FormatTable(rows);
}

}  // namespace interp
