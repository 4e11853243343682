#include "interpreter/analysis/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing::storage_test {
namespace {

// x -view-> a -in place-> b; c on its own.
constexpr char kProgram[] = R"(block 0
  var x int64[4]
  var w int64[4] param
  var u int64[4] param
  view(X=x) -> (Out=a) {shape=[2,2]} inplace(X->Out)
  mix(X=[a, w]) -> (Out=b) inplace(X[0]->Out)
  mix(X=[b]) -> (Out=c)
  update(Param=u, X=c) -> (ParamOut=u)
)";

TEST(StorageTest, PairsJoinVariables) {
  const absl::StatusOr<Plan> plan = PlanOf(kProgram);
  ASSERT_THAT(plan, IsOk());
  const auto storage = [&](absl::string_view name) {
    return plan->vars[VarNamed(*plan, name)].storage;
  };
  EXPECT_EQ(storage("a"), storage("x"));
  EXPECT_EQ(storage("b"), storage("x"));
  EXPECT_EQ(storage("c"), VarNamed(*plan, "c"));
  EXPECT_EQ(storage("w"), VarNamed(*plan, "w"));
}

TEST(StorageTest, ConstantsArePersistableAndWrittenByNothing) {
  const absl::StatusOr<Plan> plan = PlanOf(kProgram);
  ASSERT_THAT(plan, IsOk());
  const auto constant = [&](absl::string_view name) {
    return plan->vars[VarNamed(*plan, name)].constant;
  };
  EXPECT_TRUE(constant("w"));
  EXPECT_FALSE(constant("u"));
  EXPECT_FALSE(constant("x"));
}

TEST(StorageTest, AViewIsNoWrite) {
  const absl::StatusOr<Plan> plan = PlanOf(kProgram);
  ASSERT_THAT(plan, IsOk());
  EXPECT_TRUE(IsView(plan->instructions[0], plan->instructions[0].share[0]));
  EXPECT_FALSE(IsView(plan->instructions[1], plan->instructions[1].share[0]));
}

// 200,000 views in a row: union-find, not a walk along the chain for each.
TEST(StorageTest, LongChainsAreCheap) {
  const int n = 200'000;
  std::vector<PlanVar> vars(n + 1);
  Instruction view;
  view.def = ProbeOps().Find("view");
  view.input_counts = {1};
  view.output_counts = {1};
  view.share = {{0, 0}};
  std::vector<Instruction> instructions(n, view);
  for (int i = 0; i < n; ++i) {
    instructions[i].inputs = {n - i};
    instructions[i].outputs = {n - i - 1};
  }
  AnalyzeStorage(instructions, vars);
  EXPECT_EQ(vars[0].storage, 0);
  EXPECT_EQ(vars[n].storage, 0);
}

}  // namespace
}  // namespace interp::testing::storage_test
