#include "interpreter/analysis/streams.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing {
namespace {

TEST(StreamsTest, PriorityIsTheAttributeOrByKind) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=x) -> (Out=b) {scheduling_priority=-3}
  c_allreduce(X=x) -> (Out=c)
  c_allreduce(X=x) -> (Out=d) {scheduling_priority=7}
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->instructions[0].priority, 0);
  EXPECT_EQ(plan->instructions[1].priority, -3);
  EXPECT_EQ(plan->instructions[2].priority, 1);
  EXPECT_EQ(plan->instructions[3].priority, 7);
  for (const Instruction& instruction : plan->instructions) {
    EXPECT_EQ(instruction.queue, QueueKind::kHost);
    EXPECT_EQ(instruction.stream, 0);
  }
}

}  // namespace
}  // namespace interp::testing
