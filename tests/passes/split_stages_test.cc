#include "passes/train/split_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "core/program_parse.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;

// x --fc--> a --relu--> b --fc--> c --mean--> loss, gradients, one update each.
constexpr char kStep[] = R"(block 0
  var x float32[-1,8] check_feed
  var w1 float32[8,8] param
  var w2 float32[8,8] param
  var lr float32[1] persistable
  var a float32[-1,8]
  var b float32[-1,8]
  var c float32[-1,8]
  var loss float32[1]
  mul(X=x, Y=w1) -> (Out=a) {$0}
  relu(X=a) -> (Out=b) {$1}
  mul(X=b, Y=w2) -> (Out=c) {$2}
  mean(X=c) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {op_role=257}
  mean_grad(X=c, Out@GRAD=loss@GRAD) -> (X@GRAD=c@GRAD) {op_role=1}
  mul_grad(X=b, Y=w2, Out@GRAD=c@GRAD) -> (X@GRAD=b@GRAD, Y@GRAD=w2@GRAD) {op_role=1}
  relu_grad(Out=b, Out@GRAD=b@GRAD) -> (X@GRAD=a@GRAD) {op_role=1}
  mul_grad(X=x, Y=w1, Out@GRAD=a@GRAD) -> (Y@GRAD=w1@GRAD) {op_role=1}
  scale(X=lr) -> (Out=rate) {op_role=16}
  sgd(Param=w2, Grad=w2@GRAD, LearningRate=rate) -> (ParamOut=w2) {op_role=2}
  sgd(Param=w1, Grad=w1@GRAD, LearningRate=rate) -> (ParamOut=w1) {op_role=2}
)";

Program Parse(const std::string& first, const std::string& second, const std::string& third) {
  const absl::StatusOr<Program> program =
      ParseProgram(absl::StrReplaceAll(kStep, {{"$0", first}, {"$1", second}, {"$2", third}}));
  EXPECT_THAT(program, IsOk());
  return *program;
}
Program OnDevices(const std::string& first, const std::string& second, const std::string& third) {
  const auto attr = [](const std::string& device) {
    return absl::StrCat("op_device=\"", device, "\"");
  };
  return Parse(attr(first), attr(second), attr(third));
}

absl::StatusOr<StageSplit> Split(const Program& program, int32_t num_segments) {
  return SplitStages(program, num_segments, OpRegistry::Global());
}

TEST(SplitStagesTest, FollowsTheDevices) {
  const Program program = OnDevices("gpu:0", "", "gpu:1");
  EXPECT_EQ(CountDeviceSegments(program), 2);
  const auto split = Split(program, 0);
  ASSERT_THAT(split, IsOk());
  EXPECT_EQ(split->num_segments, 2);
  EXPECT_THAT(split->segment_of, ElementsAre(0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0));
}

TEST(SplitStagesTest, CutsIntoPartsOfTheSameCost) {
  const auto split = Split(Parse("", "", ""), 2);
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(split->segment_of, ElementsAre(0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0));
}

TEST(SplitStagesTest, EachPartHasAnOp) {
  const auto split = Split(Parse("", "", ""), 4);
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(split->segment_of, ElementsAre(0, 1, 2, 3, 3, 3, 2, 1, 0, 0, 2, 0));
  EXPECT_THAT(Split(Parse("", "", ""), 5),
              FailsWith(StatusCode::kInvalidArgument, "the forward part has 4 ops, expected one"));
}

TEST(SplitStagesTest, WhatGoesBackIsRefused) {
  EXPECT_THAT(Split(OnDevices("gpu:1", "gpu:1", "gpu:0"), 0),
              FailsWith(StatusCode::kInvalidArgument,
                        "op #2 mul: attribute op_device puts it into segment 0 of the network, "
                        "but it needs 'b', with which a later job"));
}

// Whatever their role: they read or overwrite what the backward part has or uses.
TEST(SplitStagesTest, WhatNeedsTheBackwardPartRunsWithIt) {
  constexpr char kNet[] = R"(block 0
  var x float32[-1,4] check_feed
  var w float32[4,4] param
  mul(X=x, Y=w) -> (Out=a)
  mean(X=a) -> (Out=loss) {op_role=256}
  mean_grad(X=a) -> (X@GRAD=a@GRAD) {op_role=1}
  mul_grad(X=x, Y=w, Out@GRAD=a@GRAD) -> (Y@GRAD=w@GRAD) {op_role=1}
  mean(X=w@GRAD) -> (Out=n)
  scale(X=a) -> (Out=a)
  scale(X=loss) -> (Out=l)
  sgd(Param=w, Grad=w@GRAD) -> (ParamOut=w) {op_role=2}
)";
  const absl::StatusOr<Program> program = ParseProgram(kNet);
  ASSERT_THAT(program, IsOk());
  const auto one = Split(*program, 1);
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT(one->job_of, ElementsAre(0, 0, 1, 1, 1, 1, 0, -1));
  const auto two = Split(*program, 2);
  ASSERT_THAT(two, IsOk());
  EXPECT_THAT(two->job_of, ElementsAre(0, 0, 3, 3, 3, 3, 1, -1));
  EXPECT_THAT(two->segment_of, ElementsAre(0, 0, 0, 0, 0, 0, 1, 0));
}

TEST(SplitStagesTest, TheHostMayHaveANumber) {
  EXPECT_EQ(CountDeviceSegments(OnDevices("cpu:3", "cpu", "")), 0);
}

TEST(SplitStagesTest, DevicesWithoutNumbersOrOpsAreRefused) {
  EXPECT_EQ(CountDeviceSegments(OnDevices("gpu:all", "cpu", "")), 0);
  EXPECT_THAT(Split(OnDevices("gpu:all", "cpu", ""), 0),
              FailsWith(StatusCode::kInvalidArgument, "give the number of stages"));
  EXPECT_THAT(
      Split(OnDevices("gpu:0", "gpu:0", "gpu:2"), 0),
      FailsWith(StatusCode::kInvalidArgument, "puts no op of the forward part on device 1"));
}

}  // namespace
}  // namespace interp
