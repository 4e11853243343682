#include "interpreter/analysis/select_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

TEST(SelectKernelsTest, AllUnknownOpsAreListedAtOnce) {
  EXPECT_THAT(PlanOf(R"(block 0
  zeta(X=x) -> (Out=y)
  mix(X=y) -> (Out=z)
  alpha(X=z) -> (Out=u)
  zeta(X=u) -> (Out=v)
)"),
              FailsWith(kUnimplemented, "ops that interp does not have: alpha zeta"));
}

TEST(SelectKernelsTest, ErrorsNameTheOpAndTheSlot) {
  EXPECT_THAT(PlanOf("block 0\n  source() -> (Out=x) {shape=[2], dtype=3}\n"
                     "  update(Param=x) -> (ParamOut=y)\n"),
              FailsWith(kInvalid, "block 0, op #1 update: input 'X' is missing"));
  EXPECT_THAT(PlanOf("block 0\n  update(Param=x, X=x) -> ()\n"),
              FailsWith(kInvalid, "block 0, op #0 update: output 'ParamOut' is missing"));
  EXPECT_THAT(PlanOf("block 0\n  update(Param=[a, b], X=x) -> (ParamOut=y)\n"),
              FailsWith(kInvalid, "input 'Param' has 2 arguments, expected 1"));
  EXPECT_THAT(
      PlanOf("block 0\n  mix(X=x, Bias=b) -> (Out=y)\n"),
      FailsWith(kUnimplemented, "has input slot 'Bias', which interp does not know; known: X"));
  EXPECT_THAT(PlanOf("block 0\n  mix(X=x) -> (Out=y, Mask=m)\n"),
              FailsWith(kUnimplemented, "has output slot 'Mask'"));
}

TEST(SelectKernelsTest, UnknownSlotsWithoutArgumentsAreNoMatter) {
  EXPECT_THAT(PlanOf("block 0\n  var x int64[2]\n"
                     "  mix(X=x, Bias=[], Scale=@EMPTY@) -> (Out=y, Mask=[])\n"),
              IsOk());
}

TEST(SelectKernelsTest, AMissingKernelListsThoseThereAre) {
  EXPECT_THAT(PlanOf("block 0\n  var x float32[2]\n  mix(X=x) -> (Out=y)\n"),
              FailsWith(kUnimplemented,
                        "op #0 mix: has no kernel for float32 on cpu; there are: "
                        "int64 int32"));
}

TEST(SelectKernelsTest, BadAttributesAreErrorsOfTheOp) {
  EXPECT_THAT(PlanOf("block 0\n  var x int64[2]\n  mix(X=x) -> (Out=y) {tag=\"one\"}\n"),
              FailsWith(kInvalid, "block 0, op #0 mix: "));
}

// x:int32 makes y int32, whatever y is declared as; the kernel of z is chosen by that.
TEST(SelectKernelsTest, DTypesFlowFromTheWriters) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int32[2]
  var y int64[2]
  mix(X=x) -> (Out=y)
  mix(X=y) -> (Out=z)
  shape_of(X=z) -> (Out=s)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->vars[VarNamed(*plan, "y")].dtype, DType::kInt32);
  EXPECT_EQ(plan->instructions[1].dtype, DType::kInt32);
  EXPECT_EQ(plan->vars[VarNamed(*plan, "z")].dtype, DType::kInt32);
  EXPECT_EQ(plan->vars[VarNamed(*plan, "s")].dtype, DType::kInt64);
}

TEST(SelectKernelsTest, WithoutInputsTheDTypeAttributeDecides) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  source() -> (Out=a) {shape=[2], dtype=2}
  source() -> (Out=b) {shape=[2], dtype=3}
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->instructions[0].dtype, DType::kInt32);
  EXPECT_EQ(plan->instructions[1].dtype, DType::kInt64);
  EXPECT_THAT(PlanOf("block 0\n  source() -> (Out=a) {shape=[2]}\n"),
              FailsWith(kUnimplemented, "no kernel for float32"));
}

TEST(SelectKernelsTest, ArgumentsFollowTheDefinitionsSlots) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var p int64[2]
  var x int64[2]
  update(X=x, Param=p) -> (ParamOut=q)
  mix(X=[x, @EMPTY@, p]) -> (Out=y)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Briefs(*plan), ElementsAre("update(p,x)->q", "mix(x,@EMPTY@,p)->y"));
  EXPECT_THAT(plan->instructions[1].input_counts, ElementsAre(3));
}

// Pairs count arguments in the op's order, instructions in the definition's.
TEST(SelectKernelsTest, PairsAreTranslated) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var p int64[2]
  var x int64[2]
  update(X=x, Param=p) -> (ParamOut=q) inplace(Param->ParamOut)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->instructions[0].share, ElementsAre(InplacePair{0, 0}));
}

TEST(SelectKernelsTest, DeclaredInplaceKeepsTheName) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var p int64[2]
  var x int64[2]
  update(Param=p, X=x) -> (ParamOut=p)
  mix(X=[x, p]) -> (Out=x)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Briefs(*plan), ElementsAre("update(p,x)->p", "mix(x,p)->x"));
}

// A kernel may write element 0 of Out before it reads element 1 of any input but the paired one.
TEST(SelectKernelsTest, OtherSameNamesAreSplit) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var p int64[2]
  var x int64[2]
  update(Param=p, X=x) -> (ParamOut=x)
  mix(X=[p, x]) -> (Out=x)
  mix(X=[x, x]) -> (Out=x)
  dynamic(X=x) -> (Out=x)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Briefs(*plan),
              ElementsAre("update(p,x)->x@out2", "assign(x@out2)->x", "mix(p,x)->x@out3",
                          "assign(x@out3)->x", "mix(x,x)->x@out4", "assign(x@out4)->x",
                          "dynamic(x)->x@out5", "assign(x@out5)->x"));
  EXPECT_EQ(plan->num_program_vars, 2);
  ASSERT_EQ(plan->inserted_ops.size(), 4u);
  EXPECT_EQ(plan->instructions[1].inserted_op, 0);
  EXPECT_EQ(plan->inserted_ops[0].type, "assign");
}

TEST(SelectKernelsTest, SplittingNeedsShareData) {
  OpRegistry ops;
  ops.Add(*ProbeOps().Find("dynamic"));
  const absl::StatusOr<Program> program =
      ParseProgram("block 0\n  var x int64[2]\n  dynamic(X=x) -> (Out=x)\n");
  EXPECT_THAT(MainPlan(*program, {}, ops),
              FailsWith(kUnimplemented, "op #0 dynamic: output 'x' is also an input"));
}

}  // namespace
}  // namespace interp::testing
