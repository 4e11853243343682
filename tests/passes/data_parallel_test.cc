#include "passes/train/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "tests/testing/matchers.h"
#include "tests/testing/program_text.h"

namespace interp::data_parallel_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::OpTypes;

constexpr char kStep[] = R"(block 0
  var w1 float32[3,2] param
  var w2 float32[2,1] param
  var table float32[9,3] param
  var rate float32[1] persistable
  var x float32[-1,3] check_feed
  var h float32[-1,2]
  var loss float32[1]
  var w1@GRAD float32[3,2]
  var w2@GRAD float32[2,1]
  var table@GRAD selected_rows float32[9,3]
  mul(X=x, Y=w1) -> (Out=h) {op_role=0}
  mul(X=h, Y=w2) -> (Out=p) {op_role=0}
  mean(X=p) -> (Out=loss) {op_role=256}
  mul_grad(X=h, Out@GRAD=p) -> (Y@GRAD=w2@GRAD) {op_role=1}
  relu_grad(X=h) -> (Out=h2) {op_role=1}
  mul_grad(X=x, Out@GRAD=h2) -> (Y@GRAD=w1@GRAD) {op_role=1}
  lookup_table_grad(X=x, Out@GRAD=h2) -> (W@GRAD=table@GRAD) {op_role=1}
  sgd(Param=w2, Grad=w2@GRAD, LearningRate=rate) -> (ParamOut=w2) {op_role=2}
  sgd(Param=w1, Grad=w1@GRAD, LearningRate=rate) -> (ParamOut=w1) {op_role=2}
  sgd(Param=table, Grad=table@GRAD, LearningRate=rate) -> (ParamOut=table) {op_role=2}
)";

DataParallelProgram Make(int64_t bucket_bytes) {
  const absl::StatusOr<Program> program = ParseProgram(kStep);
  EXPECT_THAT(program, IsOk());
  auto made = MakeDataParallel(*program, {.bucket_bytes = bucket_bytes});
  EXPECT_THAT(made, IsOk());
  return *std::move(made);
}

TEST(DataParallelTest, BucketsStartBehindTheirLastGradient) {
  const DataParallelProgram made = Make(/*bucket_bytes=*/1);
  EXPECT_EQ(made.num_buckets, 2);
  EXPECT_THAT(OpTypes(made.program),
              ElementsAre("mul", "mul", "mean", "mul_grad", "c_bucket_allreduce", "relu_grad",
                          "mul_grad", "c_bucket_allreduce", "lookup_table_grad", "c_allreduce_rows",
                          "c_bucket_wait", "c_bucket_wait", "sgd", "sgd", "sgd"));
  EXPECT_THAT(ToText(made.program),
              HasSubstr("c_bucket_wait(X=w2@GRAD, Bucket=data_parallel@BUCKET_0) -> "
                        "(Out=w2@GRAD)"));
}

TEST(DataParallelTest, BucketsAreFilledBeforeTheyStart) {
  const DataParallelProgram made = Make(/*bucket_bytes=*/1 << 20);
  EXPECT_EQ(made.num_buckets, 1);
  EXPECT_THAT(ToText(made.program),
              HasSubstr("c_bucket_allreduce(X=[w2@GRAD, w1@GRAD], Weight=data_parallel@WEIGHT)"));
}

TEST(DataParallelTest, PersistableGradientsAreInBuckets) {
  const absl::StatusOr<Program> program = ParseProgram(
      absl::StrReplaceAll(kStep, {{"w1@GRAD float32[3,2]", "w1@GRAD float32[3,2] persistable"}}));
  ASSERT_THAT(program, IsOk());
  const auto made = MakeDataParallel(*program, {.bucket_bytes = 1 << 20});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(ToText(made->program), HasSubstr("c_bucket_allreduce(X=[w2@GRAD, w1@GRAD]"));
}

TEST(DataParallelTest, SaysWhichVariablesAreTheSameOnAllRanks) {
  const DataParallelProgram made = Make(1);
  EXPECT_TRUE(made.same_on_all_ranks.contains("w1"));
  EXPECT_FALSE(made.same_on_all_ranks.contains("loss"));
}

TEST(DataParallelTest, UpdatesThatRanksCannotShareAreRefused) {
  const auto message = [](const std::string& more, const std::string& gradient) {
    const absl::StatusOr<Program> program = ParseProgram(absl::StrReplaceAll(
        kStep, {{"  var loss", "  var acc float32[2,1] persistable\n  var loss"},
                {"  sgd(Param=w2, Grad=w2@GRAD", more + gradient}}));
    EXPECT_THAT(program, IsOk());
    return std::string(MakeDataParallel(*program, {}).status().message());
  };
  EXPECT_THAT(
      message("  sum(X=[acc, w2@GRAD]) -> (Out=acc) {op_role=1}\n", "  sgd(Param=w2, Grad=acc"),
      HasSubstr("'acc', a persistable variable that the backward part changes: ranks"));
  EXPECT_THAT(message("", "  sgd(Param=w2, Rows=h, Grad=w2@GRAD"),
              HasSubstr("'h', whose rows are samples: ranks have some each"));
}

// Averages that only move are none of them.
TEST(DataParallelTest, StatesThatStepsDependOnBecomeThoseOfRank0) {
  const auto with = [](const std::string& ops, const std::string& dims = "2") {
    const absl::StatusOr<Program> program = ParseProgram(absl::StrReplaceAll(
        kStep,
        {{"  var loss", absl::StrCat("  var mean float32[", dims, "] persistable\n  var loss")},
         {"  mean(X=p)", absl::StrCat(ops, "  mean(X=p)")}}));
    EXPECT_THAT(program, IsOk());
    return MakeDataParallel(*program, {.bucket_bytes = 1 << 20});
  };
  const std::string norm = "  batch_norm(X=h, Mean=mean) -> (Y=n, MeanOut=mean)\n";
  const std::string back = "  batch_norm_grad(X=h, Mean=mean) -> (X@GRAD=n2) {op_role=1}\n";
  const auto moved = with(norm + back);
  ASSERT_THAT(moved, IsOk());
  EXPECT_THAT(ToText(moved->program), Not(HasSubstr("c_broadcast")));
  for (const std::string& reader :
       {std::string("  elementwise_sub(X=h, Y=mean) -> (Out=h)\n"),
        std::string("  batch_norm(X=h, Mean=mean) -> (Y=m, MeanOut=mean) {is_test=true}\n")}) {
    const auto read = with(norm + reader);
    ASSERT_THAT(read, IsOk());
    EXPECT_THAT(ToText(read->program), HasSubstr("c_broadcast(X=mean) -> (Out=mean)"));
    const std::vector<std::string> types = OpTypes(read->program);
    EXPECT_LT(std::ranges::find(types, "c_broadcast"), std::ranges::find(types, "sgd"));
  }
  // No step begins with a value that is declared persistable to be fetched, say.
  const auto shown = with("  relu(X=p) -> (Out=mean)\n  tanh(X=mean) -> (Out=t)\n", "-1");
  ASSERT_THAT(shown, IsOk());
  EXPECT_THAT(ToText(shown->program), Not(HasSubstr("c_broadcast")));
  EXPECT_THAT(std::string(with("  tanh(X=mean) -> (Out=mean)\n", "-1").status().message()),
              HasSubstr("'mean' is a state of open dims"));
}

TEST(DataParallelTest, AProgramWithoutUpdateIsRefused) {
  const absl::StatusOr<Program> program =
      ParseProgram("block 0\n  var x float32[1]\n  relu(X=x) -> (Out=x)\n");
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(std::string(MakeDataParallel(*program, {}).status().message()),
              HasSubstr("0 of the update"));
}

}  // namespace
}  // namespace interp::data_parallel_test
