#include "interpreter/analysis/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

// A plan of `n` instructions with nothing but edges and priorities.
Plan Linked(size_t n, const std::vector<std::pair<int, int>>& edges,
            const std::vector<int32_t>& priorities = {}) {
  Plan plan;
  plan.instructions.resize(n);
  for (size_t i = 0; i < priorities.size(); ++i) plan.instructions[i].priority = priorities[i];
  for (const auto& [from, to] : edges) plan.edges.push_back({.from = from, .to = to});
  LinkInstructions(plan);
  return plan;
}

TEST(LinkTest, CountsAndSuccessorsComeFromKeptEdges) {
  Plan plan;
  plan.instructions.resize(3);
  plan.edges = {{.from = 0, .to = 1}, {.from = 0, .to = 2, .shrunk = true}, {.from = 1, .to = 2}};
  LinkInstructions(plan);
  EXPECT_THAT(plan.dep_counts, ElementsAre(0, 1, 1));
  EXPECT_THAT(plan.successors[0], ElementsAre(1));
  EXPECT_THAT(plan.successors[1], ElementsAre(2));
  EXPECT_TRUE(plan.successors[2].empty());
  EXPECT_EQ(plan.successors.num_ids(), 2u);
}

TEST(LinkTest, OrderIsProgramOrderAmongEquals) {
  EXPECT_THAT(Linked(4, {{0, 3}}).order, ElementsAre(0, 1, 2, 3));
}

// 2 is the most urgent of the ready ones; 1 becomes ready with 0 and is less urgent than 3.
TEST(LinkTest, LowerPriorityValuesComeFirst) {
  EXPECT_THAT(Linked(4, {{0, 1}}, {0, 5, -1, 2}).order, ElementsAre(2, 0, 3, 1));
}

//   0 -> 1 -> 3 -> 4      level sizes 1 2 1 1
//   0 -> 2 -> 3
TEST(LinkTest, MeasuresWidthAndDepth) {
  const Plan plan = Linked(5, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}});
  EXPECT_EQ(plan.max_width, 2);
  EXPECT_EQ(plan.critical_path, 4);
}

TEST(LinkTest, AnEmptyPlanHasNoDepth) {
  const Plan plan = Linked(0, {});
  EXPECT_EQ(plan.max_width, 0);
  EXPECT_EQ(plan.critical_path, 0);
}

TEST(LinkTest, OrdersOfRandomProgramsObeyAllEdges) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const RandomGraph graph = MakeRandomGraph(seed);
    const absl::StatusOr<Plan> plan = MainPlan(graph.program, {}, ProbeOps());
    ASSERT_THAT(plan, IsOk());
    std::vector<size_t> position(plan->instructions.size());
    ASSERT_EQ(plan->order.size(), position.size());
    for (size_t p = 0; p < plan->order.size(); ++p) position[plan->order[p]] = p;
    for (const Edge& edge : plan->edges) ASSERT_LT(position[edge.from], position[edge.to]);
  }
}

std::vector<std::string> DynamicOps(absl::string_view text) {
  const absl::StatusOr<Plan> plan = PlanOf(text);
  EXPECT_THAT(plan, IsOk());
  std::vector<std::string> briefs;
  if (!plan.ok()) return briefs;
  for (const Instruction& instruction : plan->instructions) {
    if (instruction.dynamic_shape) briefs.push_back(Brief(*plan, instruction));
  }
  return briefs;
}

TEST(DynamicShapesTest, FollowFromDynamicOutputs) {
  EXPECT_THAT(DynamicOps(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  dynamic(X=a) -> (Out=b)
  mix(X=[a, b]) -> (Out=c)
  mix(X=a) -> (Out=d)
)"),
              ElementsAre("dynamic(a)->b", "mix(a,b)->c"));
}

// The feed kernel sets the shape itself, but it is that of the feed.
TEST(DynamicShapesTest, FeedsAreNotDynamic) {
  EXPECT_THAT(DynamicOps(R"(block 0
  var feed feed_minibatch persistable
  var x int64[2]
  feed(X=feed) -> (Out=x) {col=0}
  mix(X=x) -> (Out=a)
)"),
              ElementsAre());
}

TEST(DynamicShapesTest, ValuesThatAreNoConstantsMatter) {
  EXPECT_THAT(DynamicOps(R"(block 0
  var x int64[2]
  var w int64[1] param
  resize_to(X=x, Shape=w) -> (Out=a)
  mix(X=w) -> (Out=v)
  resize_to(X=x, Shape=v) -> (Out=b)
)"),
              ElementsAre("resize_to(x,v)->b"));
}

// What #0 and its readers see depends on which writer was last.
TEST(DynamicShapesTest, SeveralWriters) {
  EXPECT_THAT(DynamicOps(R"(block 0
  var x int64[2]
  var y int64[3]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
  mix(X=y) -> (Out=a)
  mix(X=y) -> (Out=d)
)"),
              ElementsAre("mix(x)->a", "mix(a)->b", "mix(y)->a"));
}

// Training steps would infer everything again.
TEST(DynamicShapesTest, UpdatesInPlaceAreNot) {
  EXPECT_THAT(DynamicOps(R"(block 0
  var y int64[3]
  var w int64[1] param
  update(Param=w, X=y) -> (ParamOut=w)
  mix(X=w) -> (Out=c)
  mix(X=y) -> (Out=a)
  update(Param=a, X=w) -> (ParamOut=a)
  mix(X=a) -> (Out=d)
)"),
              ElementsAre());
}

}  // namespace
}  // namespace interp::testing
