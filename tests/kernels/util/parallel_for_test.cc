#include "kernels/util/parallel_for.h"

#include <gtest/gtest.h>

namespace interp {
namespace {

TEST(GrainForTest, StepsOfAGrainCostATaskTogether) {
  EXPECT_EQ(GrainFor(1), kElementwiseGrain);
  EXPECT_EQ(GrainFor(16), kElementwiseGrain / 16);
  EXPECT_EQ(GrainFor(3, /*cost_of_task=*/10), 4);
  EXPECT_EQ(GrainFor(5, /*cost_of_task=*/10), 2);
  EXPECT_EQ(GrainFor(11, /*cost_of_task=*/10), 1);
}

TEST(GrainForTest, StepsWithoutElementsCostAsMuchAsOne) {
  EXPECT_EQ(GrainFor(0), kElementwiseGrain);
  EXPECT_EQ(GrainForShare(0, 4), kElementwiseGrain);
  EXPECT_EQ(GrainForShare(0, 0), kElementwiseGrain);
}

TEST(GrainForTest, AShareIsTheAverage) {
  EXPECT_EQ(GrainForShare(12, 3, /*cost_of_task=*/8), GrainFor(4, /*cost_of_task=*/8));
}

}  // namespace
}  // namespace interp
