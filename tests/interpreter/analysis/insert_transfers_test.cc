#include "interpreter/analysis/insert_transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> InstructionsOf(absl::string_view text, const PlanOptions& options = {}) {
  const absl::StatusOr<Plan> plan = PlanOf(text, options);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? Briefs(*plan) : std::vector<std::string>();
}

// a is int64, so b is cast for it; both readers use the one copy.
TEST(InsertTransfersTest, CastsOncePerVersion) {
  EXPECT_THAT(
      InstructionsOf(R"(block 0
  var a int64[2]
  var b int32[2]
  mix(X=[a, b]) -> (Out=c)
  mix(X=[a, b]) -> (Out=d)
)"),
      ElementsAre("cast(b)->b_dtype_2_3", "mix(a,b_dtype_2_3)->c", "mix(a,b_dtype_2_3)->d"));
}

// Whoever reads the plan finds the attributes of what was inserted.
TEST(InsertTransfersTest, InsertedInstructionsHaveOps) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var a int64[2]
  var b int32[2]
  mix(X=[a, b]) -> (Out=c)
)");
  ASSERT_THAT(plan, IsOk());
  ASSERT_EQ(plan->inserted_ops.size(), 1u);
  EXPECT_EQ(plan->inserted_ops[0].type, "cast");
  EXPECT_NE(plan->inserted_ops[0].FindAttr("out_dtype"), nullptr);
  EXPECT_EQ(plan->instructions[0].inserted_op, 0);
  EXPECT_EQ(plan->instructions[1].inserted_op, -1);
}

// Paddle reuses the first copy here, which is stale by then.
TEST(InsertTransfersTest, AWriteMakesCopiesStale) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var a int64[2]
  var b int32[2]
  mix(X=[a, b]) -> (Out=c)
  mix(X=b) -> (Out=b)
  mix(X=[a, b]) -> (Out=d)
)"),
              ElementsAre("cast(b)->b_dtype_2_3", "mix(a,b_dtype_2_3)->c", "mix(b)->b",
                          "cast(b)->b_dtype_2_3_1", "mix(a,b_dtype_2_3_1)->d"));
}

// A reader sees what the last writer before it made of a variable, not the last of all.
TEST(InsertTransfersTest, AVariableMayBeWrittenWithSeveralDTypes) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var a int64[2]
  var b int32[2]
  var v int32[2]
  mix(X=a) -> (Out=v)
  mix(X=[a, v]) -> (Out=c)
  mix(X=b) -> (Out=v)
  mix(X=[a, v]) -> (Out=d)
)"),
              ElementsAre("mix(a)->v", "mix(a,v)->c", "mix(b)->v", "cast(v)->v_dtype_2_3",
                          "mix(a,v_dtype_2_3)->d"));
}

TEST(InsertTransfersTest, AnyDTypeSlotsAreLeftAlone) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var a int64[2]
  var b int32[2]
  resize_to(X=a, Shape=b) -> (Out=c)
  shape_of(X=b) -> (Out=d)
)"),
              ElementsAre("resize_to(a,b)->c", "shape_of(b)->d"));
}

// An op that updates a variable of another dtype reads the cast copy and writes the variable.
TEST(InsertTransfersTest, ACastInputIsNoLongerUpdatedInPlace) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var p int32[2]
  var x int64[2]
  update(Param=p, X=x) -> (ParamOut=q) inplace(Param->ParamOut)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Briefs(*plan), ElementsAre("cast(p)->p_dtype_2_3", "update(p_dtype_2_3,x)->q"));
  EXPECT_TRUE(plan->instructions[1].share.empty());
}

// The device that reads makes the copy. `x` stays where its first writer made it, and what another
// device writes to it is brought there.
TEST(InsertTransfersTest, DevicesOfOneKindCopyFromEachOther) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a) {op_device="sim:0"}
  mix(X=a) -> (Out=b) {op_device="sim:1"}
  mix(X=[a, b]) -> (Out=a) {op_device="sim:1"}
  mix(X=a) -> (Out=c) {op_device="sim:1"}
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Briefs(*plan),
              ElementsAre("memcpy_h2d(x)->x_device_cpu_sim:0", "mix(x_device_cpu_sim:0)->a",
                          "memcpy_p2p(a)->a_device_sim:0_sim:1", "mix(a_device_sim:0_sim:1)->b",
                          "mix(a_device_sim:0_sim:1,b)->a_device_sim:1",
                          "memcpy_p2p(a_device_sim:1)->a", "mix(a_device_sim:1)->c"));
  EXPECT_EQ(Name(plan->instructions[2].place), "sim:1");
  EXPECT_EQ(plan->streams[plan->instructions[2].stream].name, "p2p");
  EXPECT_EQ(Name(plan->instructions[5].place), "sim:0");
}

// A program may name the op, but not for the host.
TEST(InsertTransfersTest, CopiesOfPeersAreNotForTheHost) {
  EXPECT_THAT(PlanOf(R"(block 0
  var x int64[2]
  memcpy_p2p(X=x) -> (Out=y) {op_device="cpu"}
  mix(X=y) -> (Out=z) {op_device="sim:0"}
)")
                  .status(),
              FailsWith(absl::StatusCode::kUnimplemented, "memcpy_p2p"));
  EXPECT_THAT(
      InstructionsOf(R"(block 0
  var x int64[2]
  memcpy_p2p(X=x) -> (Out=y) {op_device="sim:0"}
)"),
      ElementsAre("memcpy_h2d(x)->x_device_cpu_sim:0", "memcpy_p2p(x_device_cpu_sim:0)->y"));
}

constexpr char kImages[] = R"(block 0
  var x int64[1,3,4,4]
  var a int64[1,3,4,4]
  var b int64[1,3,4,4]
  var c int64[1,3,4,4]
  var d int64[48]
  image(X=x) -> (Out=a)
  follow(X=[x, a]) -> (Out=b)
  image(X=b) -> (Out=c)
  view(X=c) -> (Out=d) {shape=[-1]}
  mix(X=c) -> (Out=x)
)";

// One copy of x serves both readers; one of c serves both plain ops.
TEST(InsertTransfersTest, LayoutsFollowTheRules) {
  EXPECT_THAT(
      InstructionsOf(kImages),
      ElementsAre("transfer_layout(x)->x_layout_0_1", "image(x_layout_0_1)->a",
                  "follow(x_layout_0_1,a)->b", "image(b)->c", "transfer_layout(c)->c_layout_1_0",
                  "view(c_layout_1_0)->d", "mix(c_layout_1_0)->x"));
}

TEST(InsertTransfersTest, LayoutsStayPlainWhenSwitchedOff) {
  EXPECT_THAT(
      InstructionsOf(kImages, {.optimize_layout = false}),
      ElementsAre("image(x)->a", "follow(x,a)->b", "image(b)->c", "view(c)->d", "mix(c)->x"));
}

TEST(InsertTransfersTest, InstructionsKnowTheLayoutsTheyMake) {
  const absl::StatusOr<Plan> plan = PlanOf(kImages);
  ASSERT_THAT(plan, IsOk());
  std::vector<Layout> layouts;
  for (const Instruction& instruction : plan->instructions) {
    layouts.push_back(instruction.output_layouts[0]);
  }
  EXPECT_THAT(layouts,
              ElementsAre(Layout::kChannelsLast, Layout::kChannelsLast, Layout::kChannelsLast,
                          Layout::kChannelsLast, Layout::kPlain, Layout::kPlain, Layout::kPlain));
}

// Layout first, then dtype.
TEST(InsertTransfersTest, BothAtOnce) {
  EXPECT_THAT(
      InstructionsOf(R"(block 0
  var x int32[1,3,4,4]
  var a int64[1,3,4,4]
  var b int64[1,3,4,4]
  var c int64[1,3,4,4]
  image(X=a) -> (Out=b)
  follow(X=[b, x]) -> (Out=c)
)"),
      ElementsAre("transfer_layout(a)->a_layout_0_1", "image(a_layout_0_1)->b",
                  "transfer_layout(x)->x_layout_0_1", "cast(x_layout_0_1)->x_layout_0_1_dtype_2_3",
                  "follow(b,x_layout_0_1_dtype_2_3)->c"));
}

// Whoever reads the output would take it for plain.
TEST(InsertTransfersTest, OpsDoNotFollowToOutputsOfAnotherRank) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var a int64[1,3,4,4]
  var b int64[1,3,4,4]
  var c int64[]
  image(X=a) -> (Out=b)
  follow(X=b) -> (Out=c)
)"),
              ElementsAre("transfer_layout(a)->a_layout_0_1", "image(a_layout_0_1)->b",
                          "transfer_layout(b)->b_layout_1_0", "follow(b_layout_1_0)->c"));
}

// Behind an op that follows stands one that prefers channels-last; another reader is plain.
TEST(InsertTransfersTest, TurnedImagesAreAsReadersPrefer) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var x int64[1,4,4,3]
  var a int64[1,3,4,4]
  var b int64[1,3,4,4]
  var c int64[1,3,4,4]
  var d int64[1,4,4,3]
  var e int64[1,3,4,4]
  turn_first(X=x) -> (Out=a)
  follow(X=a) -> (Out=b)
  image(X=b) -> (Out=c)
  turn_last(X=c) -> (Out=d)
  mix(X=a) -> (Out=e)
)"),
              ElementsAre("turn_first(x)->a", "follow(a)->b", "image(b)->c", "turn_last(c)->d",
                          "transfer_layout(a)->a_layout_1_0", "mix(a_layout_1_0)->e"));
}

TEST(InsertTransfersTest, TurnedImagesStayPlainWhereNobodyPrefersAnything) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var x int64[1,4,4,3]
  var a int64[1,3,4,4]
  var b int64[1,3,4,4]
  turn_first(X=x) -> (Out=a)
  follow(X=a) -> (Out=b)
  mix(X=[b, a]) -> (Out=c)
)"),
              ElementsAre("turn_first(x)->a", "follow(a)->b", "mix(b,a)->c"));
}

TEST(InsertTransfersTest, LowRanksHaveNoLayout) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var x int64[3]
  var a int64[1,3,4,4]
  image(X=a) -> (Out=b)
  follow(X=[b, x]) -> (Out=c)
  image(X=x) -> (Out=d)
)"),
              ElementsAre("transfer_layout(a)->a_layout_0_1", "image(a_layout_0_1)->b",
                          "follow(b,x)->c", "image(x)->d"));
}

// The program's own cast of a constant is none in every run.
TEST(InsertTransfersTest, ACastConstantIsReadInstead) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var w int32[2] persistable
  var a int64[2]
  var b int64[2]
  cast(X=w) -> (Out=b) {in_dtype=2, out_dtype=3}
  mix(X=[a, b]) -> (Out=c)
  mix(X=a) -> (Out=b)
  mix(X=[a, b]) -> (Out=d)
)"),
              ElementsAre("mix(a,w_dtype_2_3)->c", "mix(a)->b", "mix(a,b)->d"));
}

// Copies are made of what was loaded, in one step.
TEST(InsertTransfersTest, ACastConstantChangesItsLayoutBeforeTheFirstRun) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var w int32[1,3,4,4] persistable
  var a int64[1,3,4,4]
  var b int64[1,3,4,4]
  var c int64[1,3,4,4]
  var d int64[1,3,4,4]
  cast(X=w) -> (Out=b) {in_dtype=2, out_dtype=3}
  image(X=a) -> (Out=c)
  follow(X=[c, b]) -> (Out=d)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Briefs(*plan),
              ElementsAre("transfer_layout(a)->a_layout_0_1", "image(a_layout_0_1)->c",
                          "follow(c,w_layout_0_1_dtype_2_3)->d"));
  const VarId copy = VarNamed(*plan, "w_layout_0_1_dtype_2_3");
  ASSERT_GE(copy, 0);
  EXPECT_EQ(plan->vars[copy].copy_of, VarNamed(*plan, "w"));
}

// The second cast would bring back what the first has cut off.
TEST(InsertTransfersTest, AConstantThatIsCastThereAndBackIsCutOff) {
  EXPECT_THAT(
      InstructionsOf(R"(block 0
  var w int64[2] persistable
  var a int64[2]
  var b int32[2]
  cast(X=w) -> (Out=b) {in_dtype=3, out_dtype=2}
  mix(X=[a, b]) -> (Out=c)
)"),
      ElementsAre("cast(w_dtype_3_2)->w_dtype_3_2_dtype_2_3", "mix(a,w_dtype_3_2_dtype_2_3)->c"));
}

TEST(InsertTransfersTest, WhatIsNoConstantIsCastInEveryRun) {
  EXPECT_THAT(InstructionsOf(R"(block 0
  var w int32[2] persistable
  var b int64[2]
  cast(X=w) -> (Out=b) {in_dtype=2, out_dtype=3}
  mix(X=w) -> (Out=w)
)"),
              ElementsAre("cast(w)->b", "mix(w)->w"));
}

// A block that an op runs knows the variable by its name.
TEST(InsertTransfersTest, AConstantThatASubBlockReadsIsCastInEveryRun) {
  const std::vector<std::string> instructions = InstructionsOf(R"(block 0
  var w int32[2] persistable
  var x int64[3,2]
  var s int64[2]
  var b int64[2]
  cast(X=w) -> (Out=b) {in_dtype=2, out_dtype=3}
  scan(Rows=x, State=s) -> (Out=y) {sub_block=block:1, names=["row", "before", "after", "made"]}
block 1 parent=0
  mix(X=[before, b]) -> (Out=after)
  mix(X=[row, b]) -> (Out=made)
)");
  ASSERT_EQ(instructions.size(), 2u);
  EXPECT_EQ(instructions[0], "cast(w)->b");
}

TEST(InsertTransfersTest, AMissingTransferOpIsNamed) {
  OpRegistry ops;
  ops.Add(*ProbeOps().Find("mix"));
  const absl::StatusOr<Program> program =
      ParseProgram("block 0\n  var a int64[2]\n  var b int32[2]\n  mix(X=[a, b]) -> (Out=c)\n");
  EXPECT_THAT(MainPlan(*program, {}, ops),
              FailsWith(absl::StatusCode::kUnimplemented,
                        "block 0, op #0 mix: variable 'b' needs op cast"));
}

}  // namespace
}  // namespace interp::testing
