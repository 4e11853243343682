#include "interpreter/analysis/blocks.h"

#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing {
namespace {

// What a kernel sets before an activation and reads after it has a variable of the block, though
// one of that name is declared outside and none in the block.
TEST(BlocksTest, WhatAKernelSharesWithItsBlockIsTheBlocksOwn) {
  const absl::StatusOr<std::vector<Plan>> plans = PlansOf(R"(block 0
  var x int64[3,2]
  var s int64[2]
  var y int64[-1]
  var other int64[2]
  scan(Rows=x, State=s) -> (Out=y) {sub_block=block:1, names=["x", "s", "s", "y"]}
block 1 parent=0
  mix(X=[x, other]) -> (Out=y)
  mix(X=[s, y]) -> (Out=s)
)");
  ASSERT_THAT(plans, IsOk());
  const Plan& inner = (*plans)[1];
  for (const absl::string_view name : {"x", "s", "y"}) {
    const VarId var = VarNamed(inner, name);
    ASSERT_GE(var, 0) << name;
    EXPECT_FALSE(inner.vars[var].captured) << name;
    EXPECT_EQ(inner.vars[var].dtype, DType::kInt64) << name;
    EXPECT_EQ(inner.vars[var].rank, -1) << name;
  }
  ASSERT_EQ(inner.captures.size(), 1u);
  EXPECT_EQ(inner.vars[inner.captures[0].var].name, "other");
}

TEST(BlocksTest, WhatAKernelSharesHasTheKindOfTheVariableOutside) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x selected_rows
  var s int64[2]
  var y int64[-1]
  scan(Rows=x, State=s) -> (Out=y) {sub_block=block:1, names=["row", "before", "after", "made"]}
block 1 parent=0
  mix(X=before) -> (Out=after)
  mix(X=row) -> (Out=made)
)");
  ASSERT_THAT(program, IsOk());
  const absl::StatusOr<BlockTree> tree = FindBlocks(*program, ProbeOps());
  ASSERT_THAT(tree, IsOk());
  const auto kind = [&](absl::string_view name) {
    return tree->Declaration(1, program->Find(name))->kind;
  };
  EXPECT_EQ(kind("row"), VarKind::kSelectedRows);
  EXPECT_EQ(kind("before"), VarKind::kLodTensor);
}

}  // namespace
}  // namespace interp::testing
