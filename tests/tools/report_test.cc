#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <numeric>

#include "tools/run_report.h"
#include "tools/summary.h"
#include "tools/table.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StatisticsTest, MedianOfAnEvenNumberIsTheMiddleOfTwo) {
  const RunStatistics statistics = Statistics({4, 1, 3, 2});
  EXPECT_EQ(statistics.median_ms, 2.5);
  EXPECT_EQ(statistics.min_ms, 1);
  EXPECT_EQ(statistics.mean_ms, 2.5);
  EXPECT_EQ(statistics.p99_ms, 4);
}

TEST(StatisticsTest, P99IsTheNearestRank) {
  std::vector<double> runs_ms(200);
  std::iota(runs_ms.begin(), runs_ms.end(), 1);
  EXPECT_EQ(Statistics(runs_ms).p99_ms, 198);
  EXPECT_EQ(Statistics({5}).p99_ms, 5);
}

TEST(SummarizeTest, RangeAndMeanLeaveOutWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Summary summary = Summarize({"y", Tensor::Of<float>({2, 3}, {1, nan, 3, inf, -1, -inf})});
  EXPECT_EQ(summary.min, -1);
  EXPECT_EQ(summary.max, 3);
  EXPECT_EQ(summary.mean, 1);
  EXPECT_EQ(summary.num_nan, 1);
  EXPECT_EQ(summary.num_infinite, 2);
}

TEST(SummarizeTest, SmallTensorsShowTheirValues) {
  EXPECT_THAT(Summarize({"n", Tensor::Of<int64_t>({2}, {int64_t{1} << 60, -7})}).values,
              ElementsAre("1152921504606846976", "-7"));
  EXPECT_THAT(Summarize({"b", Tensor::Of<bool>({}, {true})}).values, ElementsAre("1"));
}

TEST(SummarizeTest, TheRangeOfIntegersIsExact) {
  const Summary summary = Summarize({"n", Tensor::Of<int64_t>({2}, {(int64_t{1} << 60) + 1, -7})});
  EXPECT_EQ(summary.min_text, "-7");
  EXPECT_EQ(summary.max_text, "1152921504606846977");
}

TEST(SummarizeTest, ComplexValuesHaveBothParts) {
  using C = std::complex<float>;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Summary summary = Summarize({"c", Tensor::Of<C>({3}, {C(1, 2), C(-3, -4), C(0, nan)})});
  EXPECT_THAT(summary.values, ElementsAre("1+2j", "-3-4j", "0+nanj"));
  EXPECT_EQ(summary.max, 5);  // of the magnitudes
}

TEST(SummarizeTest, JsonHasNoNumberWhereThereIsNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  JsonWriter json;
  WriteJson(Summarize({"y", Tensor::Of<float>({2}, {nan, nan})}), json);
  EXPECT_THAT(std::move(json).Take(),
              HasSubstr(R"("min":null,"max":null,"mean":null,"nan":2,"infinite":0)"));
}

TEST(SummarizeTest, WhatWasNotComputedSaysSo) {
  EXPECT_THAT(FormatSummaries({Summarize({"y", Tensor()})}), HasSubstr("no value"));
  EXPECT_THAT(FormatSummaries({Summarize({"y", Tensor::Of<float>({0, 4}, {})})}),
              HasSubstr("[0,4]    -    -     -"));
}

TEST(FormatTableTest, NumbersAreFlushRight) {
  EXPECT_EQ(FormatTable({{"name", "n"}, {"a", "1"}, {"bc", "20"}}),
            "name   n\n"
            "a      1\n"
            "bc    20\n");
}

}  // namespace
}  // namespace interp
