#include "tools/latency.h"

#include <gtest/gtest.h>

#include <numeric>

namespace interp {
namespace {

TEST(LatencyTest, PercentilesAreNearestRanks) {
  std::vector<double> latencies(200);
  std::iota(latencies.rbegin(), latencies.rend(), 1.0);
  const LatencySummary summary = SummarizeLatencies(latencies);
  EXPECT_EQ(summary.count, 200);
  EXPECT_EQ(summary.min_ms, 1);
  EXPECT_EQ(summary.p50_ms, 100);
  EXPECT_EQ(summary.p90_ms, 180);
  EXPECT_EQ(summary.p95_ms, 190);
  EXPECT_EQ(summary.p99_ms, 198);
  EXPECT_EQ(summary.max_ms, 200);
  EXPECT_DOUBLE_EQ(summary.mean_ms, 100.5);
}

TEST(LatencyTest, EveryCallIsInOneBucket) {
  const std::vector<double> latencies = {1, 1, 2, 3, 100, 1000, 1000};
  const LatencySummary summary = SummarizeLatencies(latencies);
  ASSERT_EQ(summary.histogram.size(), static_cast<size_t>(kLatencyBuckets));
  EXPECT_EQ(summary.histogram.front().from_ms, 1);
  EXPECT_EQ(summary.histogram.back().to_ms, 1000);
  EXPECT_EQ(summary.histogram.back().count, 2);
  int64_t count = 0;
  for (size_t i = 0; i < summary.histogram.size(); ++i) {
    const LatencyBucket& bucket = summary.histogram[i];
    count += bucket.count;
    EXPECT_LT(bucket.from_ms, bucket.to_ms);
    if (i == 0) continue;
    EXPECT_EQ(bucket.from_ms, summary.histogram[i - 1].to_ms);
  }
  EXPECT_EQ(count, std::ssize(latencies));
}

TEST(LatencyTest, FewCallsAreEnough) {
  EXPECT_EQ(SummarizeLatencies({}).count, 0);
  EXPECT_TRUE(SummarizeLatencies({}).histogram.empty());
  const LatencySummary one = SummarizeLatencies({2.5});
  EXPECT_EQ(one.p50_ms, 2.5);
  EXPECT_EQ(one.p99_ms, 2.5);
  ASSERT_EQ(one.histogram.size(), 1u);
  EXPECT_EQ(FormatHistogram(one.histogram),
            "from ms  to ms  runs\n  2.500  2.500     1  "
            "########################################\n");
}

}  // namespace
}  // namespace interp
