#include "tools/tensor_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/program_parse.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(StatisticsOfTest, CountsWhatIsNotFiniteAndLeavesItOut) {
  const TensorStatistics s =
      StatisticsOf(Tensor::Of<float>({7}, {0, kNan, 4, kInfinity, -kInfinity, 0, -2}));
  EXPECT_EQ(s.type, "float32[7]");
  EXPECT_EQ(s.count, 7);
  EXPECT_EQ(s.num_zero, 2);
  EXPECT_EQ(s.num_nan, 1);
  EXPECT_EQ(s.num_infinite, 2);
  EXPECT_EQ(s.min, -2);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(s.mean, 0.5);
  EXPECT_DOUBLE_EQ(*s.deviation, std::sqrt((0.25 + 0.25 + 12.25 + 6.25) / 4));
  EXPECT_EQ(std::accumulate(s.histogram.begin(), s.histogram.end(), int64_t{0}), 4);
  EXPECT_EQ(s.histogram.front(), 1);
  EXPECT_EQ(s.histogram.back(), 1);
}

TEST(StatisticsOfTest, NothingFiniteHasCountsAlone) {
  const TensorStatistics s = StatisticsOf(Tensor::Of<float>({2}, {kNan, kInfinity}));
  EXPECT_EQ(s.num_nan, 1);
  EXPECT_EQ(s.num_infinite, 1);
  EXPECT_FALSE(s.min.has_value() || s.mean.has_value() || s.deviation.has_value());
  EXPECT_THAT(s.histogram, IsEmpty());
  EXPECT_EQ(StatisticsOf(Tensor::Of<float>({0}, {})).count, 0);
}

TEST(StatisticsOfTest, HistogramHasEqualSteps) {
  std::vector<int64_t> values(64);
  std::iota(values.begin(), values.end(), -10);
  const TensorStatistics s = StatisticsOf(Tensor::Of<int64_t>({64}, values));
  EXPECT_THAT(s.histogram, SizeIs(32));
  EXPECT_THAT(s.histogram, Each(2));
}

TEST(StatisticsOfTest, EqualElementsHaveOneStep) {
  const TensorStatistics s = StatisticsOf(Tensor::Of<float>({3}, {5, 5, 5}));
  EXPECT_THAT(s.histogram, ElementsAre(3));
  EXPECT_EQ(s.deviation, 0);
}

// The difference of the ends is no finite number.
TEST(StatisticsOfTest, LargestNumbersAreTakenApart) {
  const double most = std::numeric_limits<double>::max();
  const TensorStatistics s = StatisticsOf(Tensor::Of<double>({3}, {-most, 0, most}));
  EXPECT_EQ(s.histogram.front(), 1);
  EXPECT_EQ(s.histogram[16], 1);
  EXPECT_EQ(s.histogram.back(), 1);
}

TEST(StatisticsOfTest, WithoutMemoryThereIsATypeAlone) {
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {3};
  EXPECT_EQ(StatisticsOf(tensor).type, "float32[3]");
  EXPECT_EQ(StatisticsOf(tensor).count, 0);
}

TEST(ParameterStatisticsTest, IsOfPersistableVariablesThatHaveAValue) {
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var w float32[2] param\n  var b float32[2] param\n  var x float32[2]\n");
  ASSERT_THAT(program.status(), IsOk());
  Scope scope;
  scope.FindOrCreate("w")->tensor = Tensor::Of<float>({2}, {1, 3});
  scope.FindOrCreate("x")->tensor = Tensor::Of<float>({2}, {1, 3});
  scope.FindOrCreate("b");
  const auto all = ParameterStatistics(*program, scope);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].first, "w");
  EXPECT_EQ(all[0].second.mean, 2);
  EXPECT_THAT(ParameterStatistics(Program(), scope), IsEmpty());
}

}  // namespace
}  // namespace interp::testing
