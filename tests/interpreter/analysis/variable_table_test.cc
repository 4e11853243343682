#include "interpreter/analysis/variable_table.h"

#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/analysis/blocks.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing {
namespace {

TEST(VariableTableTest, HasOneEntryPerNameOfTheProgram) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x float32[-1,3]
  var w float32[] param
  var list feed_minibatch
  var out fetch_list
  var array lod_tensor_array
  mix(X=x) -> (Out=undeclared)
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<BlockTree> tree = FindBlocks(*program, ProbeOps());
  ASSERT_THAT(tree, IsOk());
  Plan plan;
  BuildVariableTable(*program, *tree, 0, plan);
  ASSERT_EQ(plan.vars.size(), program->names.size());
  const auto var = [&](absl::string_view name) { return plan.vars[VarNamed(plan, name)]; };

  EXPECT_EQ(var("x").name, "x");
  EXPECT_EQ(var("x").dtype, DType::kFloat32);
  EXPECT_EQ(var("x").rank, 2);
  EXPECT_TRUE(var("x").declared);
  EXPECT_FALSE(var("x").persistable);
  EXPECT_EQ(var("w").rank, -1);  // no dims may be left out ones
  EXPECT_TRUE(var("w").persistable);
  EXPECT_TRUE(var("list").persistable);
  EXPECT_TRUE(var("out").persistable);
  EXPECT_EQ(var("array").kind, VarKind::kLodTensorArray);
  EXPECT_FALSE(var("undeclared").declared);
  EXPECT_EQ(var("undeclared").rank, -1);
  EXPECT_EQ(var("undeclared").dtype, DType::kUndefined);
}

}  // namespace
}  // namespace interp::testing
