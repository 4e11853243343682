#include "passes/train/split_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "tests/testing/matchers.h"
#include "tests/testing/program_text.h"

namespace interp::split_update_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::Not;
using testing::OpTypes;

absl::StatusOr<SplitProgram> Split(absl::string_view text) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  return SplitUpdate(*program);
}

std::vector<std::string> Names(const std::vector<PassedValue>& values) {
  std::vector<std::string> names;
  for (const PassedValue& value : values) names.push_back(value.name);
  return names;
}

constexpr char kStep[] = R"(block 0
  var w float32[3,2] param
  var frozen float32[3] persistable
  var mean float32[2] persistable
  var rate float32[1] persistable
  var steps int64[1] persistable
  var x float32[-1,3] check_feed
  var h float32[-1,2]
  var loss float32[1]
  var w@GRAD float32[3,2]
  increment(X=steps) -> (Out=steps) {op_role=16}
  feed(X=feed) -> (Out=x) {col=0, op_role=0}
  scale(X=x, ScaleTensor=frozen) -> (Out=x0) {op_role=0}
  mul(X=x0, Y=w) -> (Out=h) {op_role=0}
  batch_norm(X=h, Mean=mean) -> (Y=n, MeanOut=mean) {op_role=0}
  mean(X=n) -> (Out=loss) {op_role=256}
  mul_grad(X=x0, Out@GRAD=n) -> (Y@GRAD=w@GRAD) {op_role=1}
  clip(X=w@GRAD) -> (Out=clipped) {op_role=2}
  sgd(Param=w, Grad=clipped, LearningRate=rate) -> (ParamOut=w) {op_role=2}
  fetch(X=loss) -> (Out=fetch) {col=0, op_role=0}
)";

TEST(SplitUpdate, CutsByRoles) {
  const auto split = Split(kStep);
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(OpTypes(split->compute),
              ElementsAre("scale", "mul", "batch_norm", "mean", "mul_grad"));
  EXPECT_THAT(OpTypes(split->update), ElementsAre("increment", "clip", "sgd"));
  EXPECT_THAT(split->states_read, ElementsAre("w", "mean"));
  EXPECT_THAT(split->states_written, ElementsAre("mean"));
  EXPECT_THAT(Names(split->passed), ElementsAre("w@GRAD"));
  for (const char* name : {"w", "mean", "rate", "frozen", "clipped"}) {
    EXPECT_TRUE(split->fetched_from_update.contains(name)) << name;
  }
  EXPECT_FALSE(split->fetched_from_update.contains("loss"));
}

// Paddle's ModelAverage gives its op no role.
TEST(SplitUpdate, AveragesOfParametersAreOfTheUpdate) {
  const auto split = Split(absl::StrCat(
      kStep, "  average_accumulates(param=w, in_sum_1=rate) -> (out_sum_1=rate) {op_role=0}\n"));
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(OpTypes(split->update), ::testing::Contains("average_accumulates"));
  EXPECT_THAT(OpTypes(split->compute), Not(::testing::Contains("average_accumulates")));
}

// So that runs of clones exclude nobody.
TEST(SplitUpdate, WhatAStepChangesIsNotPersistableInCompute) {
  const auto split = Split(kStep);
  ASSERT_THAT(split, IsOk());
  const std::string compute = ToText(split->compute);
  EXPECT_THAT(compute, HasSubstr("var frozen float32[3] persistable"));
  EXPECT_THAT(compute, Not(HasSubstr("var mean float32[2] persistable")));
  EXPECT_THAT(ToText(split->update), HasSubstr("var mean float32[2] persistable"));
}

TEST(SplitUpdate, SelectedRowsPassAsTensors) {
  const auto split = Split(R"(block 0
  var table float32[7,2] param
  var ids int64[-1] check_feed
  var g selected_rows float32[7,2]
  lookup_grad(W=table, Ids=ids) -> (W@GRAD=g) {op_role=1}
  sgd(Param=table, Grad=g) -> (ParamOut=table) {op_role=2}
)");
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(OpTypes(split->compute),
              ElementsAre("lookup_grad", "get_tensor_from_selected_rows", "extract_rows"));
  EXPECT_THAT(OpTypes(split->update), ElementsAre("selected_rows_from_tensor", "sgd"));
  EXPECT_THAT(Names(split->passed), ElementsAre("g@VALUES", "g@ROWS"));
  EXPECT_EQ(split->passed[0].merge, Merge::kScaledRows);
  EXPECT_EQ(split->passed[1].merge, Merge::kRows);
  EXPECT_THAT(CheckSharesUpdate(*split, "replicas"), IsOk());
}

// A step does not begin with what the one before left in it, so it is no state.
TEST(SplitUpdate, APersistableGradientIsPassed) {
  const auto split = Split(R"(block 0
  var w float32[3,2] param
  var g float32[3,2] persistable
  var sum float32[3,2] persistable
  mul_grad(Y=w) -> (Y@GRAD=g) {op_role=1}
  sum(X=[sum, g]) -> (Out=sum) {op_role=1}
  sgd(Param=w, Grad=g, More=sum) -> (ParamOut=w) {op_role=2}
)");
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(Names(split->passed), ElementsAre("g@PASSED"));
  EXPECT_EQ(split->passed[0].variable, "g");
  EXPECT_THAT(split->states_written, ElementsAre("sum"));
  EXPECT_THAT(split->gradient_sums, ElementsAre("sum"));
  EXPECT_THAT(OpTypes(split->compute), ElementsAre("mul_grad", "sum", "assign"));
  EXPECT_THAT(OpTypes(split->update), ElementsAre("assign", "sgd"));
  EXPECT_THAT(ToText(split->update), HasSubstr("var g float32[3,2] persistable"));
  EXPECT_THAT(ToText(split->compute), Not(HasSubstr("var g float32[3,2] persistable")));
}

// As Paddle's GradientMerge takes them: the update comes every other step.
TEST(SplitUpdate, SumsThatABlockOfTheUpdateReadsAreFound) {
  const auto split = Split(R"(block 0
  var w float32[3,2] param
  var acc float32[3,2] persistable
  var step int32[1] persistable
  var due bool[1]
  var g float32[3,2]
  mul_grad(Y=w) -> (Y@GRAD=g) {op_role=1}
  elementwise_add(X=acc, Y=g) -> (Out=acc) {op_role=1}
  increment(X=step) -> (Out=step) {op_role=2}
  equal(X=step) -> (Out=due) {op_role=2}
  conditional_block(Cond=due) -> (Scope=left) {sub_block=block:1, op_role=2}
block 1 parent=0
  sgd(Param=w, Grad=acc) -> (ParamOut=w) {op_role=2}
  fill_constant() -> (Out=acc) {op_role=2}
)");
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(split->gradient_sums, ElementsAre("acc"));
  EXPECT_THAT(CheckSharesUpdate(*split, "replicas"),
              FailsWith(StatusCode::kUnimplemented,
                        "the update reads 'acc', a persistable variable that the backward part "
                        "changes: replicas would each add gradients of their own to it"));
}

// Averages of batch_norm, which recompute moves in the backward part, too, and counters.
TEST(SplitUpdate, StatesThatHaveNoGradientsAreShared) {
  const auto split = Split(R"(block 0
  var w float32[3,2] param
  var mean float32[2] persistable
  var seen int64[1] persistable
  var steps float32[1] persistable
  var rate float32[1]
  var g float32[3,2]
  increment(X=steps) -> (Out=steps) {op_role=0}
  batch_norm(X=w, Mean=mean) -> (Y=n, MeanOut=mean) {op_role=1}
  increment(X=seen) -> (Out=seen) {op_role=1}
  mul_grad(Y=w) -> (Y@GRAD=g) {op_role=1}
  scale(X=steps, ScaleTensor=seen) -> (Out=rate) {op_role=16}
  sgd(Param=w, Grad=g, LearningRate=rate) -> (ParamOut=w) {op_role=2}
)");
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(split->states_written, ElementsAre("mean", "seen", "steps"));
  EXPECT_THAT(split->gradient_sums, IsEmpty());
  EXPECT_THAT(CheckSharesUpdate(*split, "replicas"), IsOk());
}

TEST(SplitUpdate, RowsOfSamplesAreNotShared) {
  const auto split = Split(R"(block 0
  var w float32[2] param
  var x float32[-1,2] check_feed
  var d float32[-1,2]
  relu_grad(X=x) -> (X@GRAD=d) {op_role=1}
  reduce_sum(X=d) -> (Out=g) {op_role=2}
  sgd(Param=w, Grad=g) -> (ParamOut=w) {op_role=2}
)");
  ASSERT_THAT(split, IsOk());
  for (const absl::Status& status :
       {CheckNoRows(*split, "ranks"), CheckSharesUpdate(*split, "ranks")}) {
    EXPECT_THAT(status, FailsWith(StatusCode::kUnimplemented,
                                  "the update reads 'd', whose rows are samples: ranks have some"));
  }
}

// A loop uses what its block uses; the block of one part stays empty in the other.
TEST(SplitUpdate, BlocksCountAsTheirOps) {
  const auto split = Split(R"(block 0
  var w float32[2] param
  var go bool[1]
  var g float32[2]
  loop(Condition=go) -> (Out=go) {sub_block=block:1, op_role=1}
  sgd(Param=w, Grad=g) -> (ParamOut=w) {op_role=2}
block 1 parent=0
  scale(X=w) -> (Out=g) {op_role=1}
)");
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(split->states_read, ElementsAre("w"));
  EXPECT_THAT(Names(split->passed), ElementsAre("g"));
  EXPECT_THAT(split->update.blocks[1].ops, IsEmpty());
  EXPECT_EQ(split->compute.blocks[1].ops.size(), 1u);
}

TEST(SplitUpdate, BlocksThatManyOpsRunAreLookedAtOnce) {
  std::string text = "block 0\n  var w float32[2] param\n  var g float32[2]\n  var go bool[1]\n";
  const auto two_loops = [&](int block) {
    for (int i = 0; i < 2; ++i) {
      absl::StrAppend(&text, "  loop(Condition=go) -> (Out=go) {sub_block=block:", block,
                      ", op_role=1}\n");
    }
  };
  constexpr int kDepth = 60;
  for (int i = 1; i <= kDepth; ++i) {
    two_loops(i);
    if (i == 1) text += "  sgd(Param=w, Grad=g) -> (ParamOut=w) {op_role=2}\n";
    absl::StrAppend(&text, "block ", i, " parent=", i - 1, "\n");
  }
  text += "  scale(X=w) -> (Out=g) {op_role=1}\n";
  const auto split = Split(text);
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(Names(split->passed), ElementsAre("g"));
}

TEST(SplitUpdate, SaysWhatCannotBeCut) {
  EXPECT_THAT(Split("block 0\n  relu(X=x) -> (Out=y)\n"),
              FailsWith(StatusCode::kInvalidArgument, "1 ops of forward and backward part and 0"));
  EXPECT_THAT(Split("block 0\n  var w float32[2] persistable\n"
                    "  scale(X=w) -> (Out=w) {op_role=2}\n  relu(X=w) -> (Out=y)\n"),
              FailsWith(StatusCode::kInvalidArgument, "op #1 relu: uses 'w' after ops of the "));
  EXPECT_THAT(Split("block 0\n  var w float32[2] persistable\n  var a lod_tensor_array float32[2]\n"
                    "  relu(X=w) -> (Out=a)\n  sgd(Param=w, Grad=a) -> (ParamOut=w) {op_role=2}\n"),
              FailsWith(StatusCode::kUnimplemented, "which is neither tensor nor selected rows"));
}

}  // namespace
}  // namespace interp::split_update_test
