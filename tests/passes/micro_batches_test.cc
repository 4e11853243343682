#include "passes/train/micro_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/each_argument.h"
#include "core/program_print.h"
#include "passes/train/micro_batch_analysis.h"
#include "passes/verify.h"
#include "tests/testing/matchers.h"
#include "tests/testing/program_text.h"

namespace interp::micro_batches_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::Parse;

constexpr char kStep[] = R"(block 0
  var x float32[-1,8] check_feed
  var table float32[3,8] check_feed
  var w1 float32[8,8] param
  var w2 float32[8,8] param
  var lr float32[1] persistable
  var seen float32[1] persistable
  var a float32[-1,8]
  var loss float32[1]
  var w1@GRAD float32[8,8]
  var w2@GRAD float32[8,8]
  mul(X=x, Y=w1) -> (Out=a) {op_device="gpu:0"}
  increment(X=seen) -> (Out=seen) {op_device="gpu:0"}
  mul(X=a, Y=w2) -> (Out=b) {op_device="gpu:1"}
  mean(X=b) -> (Out=loss) {op_role=256, op_device="gpu:1"}
  fill_constant() -> (Out=loss@GRAD) {op_role=$START}
  mean_grad(X=b, Out@GRAD=loss@GRAD) -> (X@GRAD=b@GRAD) {op_role=1}
  mul_grad(X=a, Y=w2, Out@GRAD=b@GRAD) -> (X@GRAD=a@GRAD, Y@GRAD=w2@GRAD) {op_role=1}
  mul_grad(X=x, Y=w1, Out@GRAD=a@GRAD) -> (Y@GRAD=w1@GRAD) {op_role=1}
  sgd(Param=w2, Grad=w2@GRAD, LearningRate=lr) -> (ParamOut=w2) {op_role=2}
  sgd(Param=w1, Grad=w1@GRAD, LearningRate=lr) -> (ParamOut=w1) {op_role=2}
)";

Program Step(const std::string& more = "", const std::string& start = "257") {
  return Parse(absl::StrReplaceAll(kStep, {{"$START", start}}) + more);
}

absl::StatusOr<MicroBatchProgram> TryMake(const Program& program,
                                          const MicroBatchOptions& options) {
  return MakeMicroBatches(program, {"x", "table"}, options, OpRegistry::Global());
}

MicroBatchProgram Make(const MicroBatchOptions& options, const std::string& start = "257") {
  auto made = TryMake(Step("", start), options);
  EXPECT_THAT(made, IsOk());
  EXPECT_THAT(VerifyProgram(made->program, OpRegistry::Global()), IsOk());
  return *std::move(made);
}

std::string Text(const Program& program, size_t op) {
  return ToText(program, program.blocks[0].ops[op]);
}

std::string JobsText(const MicroBatchProgram& made) {
  return absl::StrJoin(made.jobs, " ", [&](std::string* out, const JobOps& job) {
    absl::StrAppend(out, NameOf(made.schedule, job.job), "@", job.job.stage);
  });
}

TEST(MicroBatchesTest, EachHasVariablesOfItsOwn) {
  const MicroBatchProgram made = Make({.micro_batches = 2});
  const Program& program = made.program;
  EXPECT_EQ(JobsText(made), "F0@0 B0@0 F1@0 B1@0");
  ASSERT_EQ(program.blocks[0].ops.size(), 22U);
  EXPECT_THAT(Text(program, 0), HasSubstr("mul(X=x, Y=w1) -> (Out=a)"));
  EXPECT_THAT(Text(program, 0), HasSubstr("interp_job=\"F0\", interp_stage=0"));
  EXPECT_THAT(Text(program, 5), HasSubstr("scale(X=loss@GRAD, ScaleTensor=micro_batches@WEIGHT_0) "
                                          "-> (Out=loss@GRAD)"));
  EXPECT_THAT(Text(program, 7), HasSubstr("Y@GRAD=w2@GRAD@MICRO_0"));
  EXPECT_THAT(Text(program, 9), HasSubstr("mul(X=x@MICRO_1, Y=w1) -> (Out=a@MICRO_1)"));
  EXPECT_THAT(Text(program, 10), HasSubstr("increment(X=seen) -> (Out=seen)"));
  EXPECT_THAT(Text(program, 19), HasSubstr("sum(X=[w1@GRAD@MICRO_0, w1@GRAD@MICRO_1]) -> "
                                           "(Out=w1@GRAD)"));
  EXPECT_THAT(Text(program, 20), HasSubstr("sgd(Param=w2, Grad=w2@GRAD"));
  EXPECT_THAT(made.weights, ElementsAre("micro_batches@WEIGHT_0", "micro_batches@WEIGHT_1"));
}

TEST(MicroBatchesTest, TheStepHasParametersGradientsAndWholeFeedsOnce) {
  const MicroBatchProgram made = Make({.micro_batches = 3});
  for (const char* once : {"w1", "seen", "w1@GRAD", "table"}) {
    EXPECT_TRUE(made.fetched_once.contains(once)) << once;
  }
  for (const char* many : {"x", "a", "loss", "a@GRAD"}) {
    EXPECT_FALSE(made.fetched_once.contains(many)) << many;
  }
}

TEST(MicroBatchesTest, WithoutAMarkTheGradientsAreWeighted) {
  const MicroBatchProgram made = Make({.micro_batches = 2}, /*start=*/"1");
  EXPECT_THAT(Text(made.program, 7),
              HasSubstr("scale(X=w2@GRAD@MICRO_0, ScaleTensor=micro_batches@WEIGHT_0) -> "
                        "(Out=w2@GRAD@MICRO_0@WEIGHTED)"));
  EXPECT_THAT(ToText(made.program), HasSubstr("sum(X=[w1@GRAD@MICRO_0@WEIGHTED, "));
}

// Two losses, of which one is marked: what comes from both is weighted as a whole.
TEST(MicroBatchesTest, WithoutAMarkOnEachBeginTheGradientsAreWeighted) {
  const std::string more = R"(  fill_constant() -> (Out=l2@GRAD) {op_role=$ROLE}
  mean_grad(X=b, Out@GRAD=l2@GRAD) -> (X@GRAD=b2@GRAD) {op_role=1}
  mul_grad(X=a, Y=w2, Out@GRAD=b2@GRAD) -> (Y@GRAD=g2) {op_role=1}
  sum(X=[w2@GRAD, g2]) -> (Out=w2@GRAD) {op_role=1}
  sgd(Param=w2, Grad=w2@GRAD, LearningRate=lr) -> (ParamOut=w2) {op_role=2}
)";
  const auto text = [&](const char* role) {
    const std::string step = absl::StrReplaceAll(
        kStep,
        {{"$START", "257"},
         {"  sgd(Param=w2, Grad=w2@GRAD, LearningRate=lr) -> (ParamOut=w2) {op_role=2}\n", ""}});
    const size_t update = step.find("  sgd(");
    const auto made =
        TryMake(Parse(step.substr(0, update) + absl::StrReplaceAll(more, {{"$ROLE", role}}) +
                      step.substr(update)),
                {.micro_batches = 2});
    EXPECT_THAT(made, IsOk());
    return ToText(made->program);
  };
  const std::string marked = text("257");
  EXPECT_THAT(marked, HasSubstr("(X=l2@GRAD, ScaleTensor=micro_batches@WEIGHT_0)"));
  EXPECT_THAT(marked, Not(HasSubstr("@WEIGHTED")));
  const std::string mixed = text("1");
  EXPECT_THAT(mixed, Not(HasSubstr("(X=loss@GRAD, ScaleTensor")));
  EXPECT_THAT(mixed, HasSubstr("sum(X=[w1@GRAD@MICRO_0@WEIGHTED, w1@GRAD@MICRO_1@WEIGHTED])"));
  EXPECT_THAT(mixed, HasSubstr("sum(X=[w2@GRAD@MICRO_0@WEIGHTED, w2@GRAD@MICRO_1@WEIGHTED])"));
}

// Each micro-batch has one of its own, which no step keeps.
TEST(MicroBatchesTest, PersistableGradientsAreSummed) {
  const std::string text = absl::StrReplaceAll(
      kStep,
      {{"$START", "257"}, {"var w1@GRAD float32[8,8]", "var w1@GRAD float32[8,8] persistable"}});
  for (const int32_t stages : {0, 1}) {
    const auto made = TryMake(Parse(text), {.micro_batches = 2, .stages = stages});
    ASSERT_THAT(made, IsOk());
    EXPECT_THAT(VerifyProgram(made->program, OpRegistry::Global()), IsOk());
    const std::string all = ToText(made->program);
    EXPECT_THAT(all, HasSubstr("sum(X=[w1@GRAD@MICRO_0, w1@GRAD@MICRO_1]) -> (Out=w1@GRAD)"));
    EXPECT_THAT(all, HasSubstr("var w1@GRAD float32[8,8] persistable"));
    EXPECT_THAT(all, Not(HasSubstr("var w1@GRAD@MICRO_0 float32[8,8] persistable")));
    EXPECT_THAT(made->states, ElementsAre("seen"));
  }
}

// Within a micro-batch ops keep their order, whatever their role.
TEST(MicroBatchesTest, ForwardOpsThatNeedTheBackwardPartComeBehindIt) {
  const std::string text = absl::StrReplaceAll(
      kStep, {{"$START", "257"}, {"  sgd(Param=w2", "  scale(X=a) -> (Out=a)\n  sgd(Param=w2"}});
  const auto made = TryMake(Parse(text), {.micro_batches = 2});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Text(made->program, 9), HasSubstr("scale(X=a) -> (Out=a)"));
  EXPECT_THAT(Text(made->program, 9), HasSubstr("interp_job=\"B0\""));
}

TEST(MicroBatchesTest, TheHostMayHaveANumber) {
  const std::string text = absl::StrReplaceAll(
      kStep,
      {{"$START", "257"}, {"(Out=seen) {op_device=\"gpu:0\"", "(Out=seen) {op_device=\"cpu:0\""}});
  const auto made =
      TryMake(Parse(text), {.micro_batches = 2, .stages = 0, .place = {PlaceKind::kSim, 0}});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Text(made->program, 1), HasSubstr("op_device=\"cpu\""));
}

// What it reads would be one micro-batch's.
TEST(MicroBatchesTest, AnUpdateThatReadsWhatMicroBatchesCountIsRefused) {
  const auto make = [](const std::string& ops, const std::string& update) {
    const std::string text = absl::StrReplaceAll(
        kStep, {{"$START", "257"},
                {"  var a float32[-1,8]\n",
                 "  var a float32[-1,8]\n  var k int32[1]\n  var kf float32[1]\n"},
                {"  sgd(Param=w2", ops + update + "  sgd(Param=w2"}});
    return TryMake(Parse(text), {.micro_batches = 2});
  };
  const std::string count = "  cast(X=seen) -> (Out=k) {in_dtype=5, out_dtype=2}\n";
  EXPECT_THAT(make(count, "  scale(X=k) -> (Out=k2) {op_role=2}\n"),
              FailsWith(StatusCode::kUnimplemented, "the update reads 'k', made of a persistable"));
  EXPECT_THAT(make("  scale(X=seen) -> (Out=kf)\n", "  scale(X=kf) -> (Out=k2) {op_role=2}\n"),
              FailsWith(StatusCode::kUnimplemented, "'kf', made of a persistable variable that"));
  EXPECT_THAT(make("  shape(Input=a) -> (Out=k)\n", "  scale(X=k) -> (Out=k2) {op_role=2}\n"),
              FailsWith(StatusCode::kUnimplemented, "'k', int32 made of samples"));
  const std::string reads_count = "  scale(X=seen) -> (Out=k2) {op_role=2}\n";
  EXPECT_THAT(make(count, reads_count),
              FailsWith(StatusCode::kUnimplemented, "the update reads 'seen', a persistable"));
  // The same in each micro-batch.
  EXPECT_THAT(
      make("  fill_constant() -> (Out=seen) {shape=[1], dtype=5, value=2.0}\n", reads_count),
      IsOk());
}

// Also where each micro-batch is a run of its own.
TEST(MicroBatchesTest, AnUpdateThatReadsWhatTurnsCountIsRefused) {
  const auto check = [](const std::string& update) {
    const std::string text = absl::StrReplaceAll(
        kStep, {{"$START", "257"},
                {"  var a float32[-1,8]\n", "  var a float32[-1,8]\n  var kf float32[1]\n"},
                {"  sgd(Param=w2", "  scale(X=seen) -> (Out=kf)\n" + update + "  sgd(Param=w2"}});
    return CheckTurns(Parse(text), {"x", "table"}, OpRegistry::Global());
  };
  EXPECT_THAT(check(""), IsOk());
  EXPECT_THAT(check("  scale(X=kf) -> (Out=k2) {op_role=2}\n"),
              FailsWith(StatusCode::kUnimplemented, "'kf', made of a persistable variable that"));
  EXPECT_THAT(check("  scale(X=seen) -> (Out=k2) {op_role=2}\n"),
              FailsWith(StatusCode::kUnimplemented, "'seen', a persistable variable that"));
}

TEST(MicroBatchesTest, SumsThatTheProgramTakesNeedAMark) {
  const auto make = [](const char* start) {
    return TryMake(
        Parse(absl::StrReplaceAll(
            kStep,
            {{"$START", start},
             {"  var seen", "  var acc float32[8,8] persistable\n  var seen"},
             {"  sgd(Param=w1, Grad=w1@GRAD",
              "  sum(X=[acc, w1@GRAD]) -> (Out=acc) {op_role=1}\n  sgd(Param=w1, Grad=acc"},
             {"  sgd(Param=w2, Grad=w2@GRAD, LearningRate=lr) -> (ParamOut=w2) {op_role=2}\n",
              ""}})),
        {.micro_batches = 2});
  };
  EXPECT_THAT(make("257"), IsOk());
  EXPECT_THAT(make("1"), FailsWith(StatusCode::kUnimplemented, "the update reads 'acc', which"));
}

TEST(MicroBatchesTest, TooManyOpsAreRefused) {
  std::string text = "block 0\n  var w float32[1] param\n  var g float32[1]\n";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&text, "  scale(X=w) -> (Out=g) {op_role=1}\n");
  text += "  sgd(Param=w, Grad=g) -> (ParamOut=w) {op_role=2}\n";
  EXPECT_THAT(TryMake(Parse(text), {.micro_batches = 1000}),
              FailsWith(StatusCode::kInvalidArgument,
                        "1000 micro-batches of 5000 ops of the forward and backward part are more "
                        "than 4000000 ops in one program: take fewer micro-batches (at most 800)"));
}

// Of batch_norm only the averages are exempt, as its gradient does not use them.
TEST(MicroBatchesTest, StatesBetweenJobsAreRefused) {
  const std::string text = R"(block 0
  var x float32[-1,8] check_feed
  var w float32[8,8] param
  var t float32[-1,8] persistable
  var w@GRAD float32[8,8]
  mul(X=x, Y=w) -> (Out=h)
  tanh(X=h) -> (Out=t)
  mean(X=t) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {op_role=257}
  mean_grad(X=h, Out@GRAD=loss@GRAD) -> (X@GRAD=t@GRAD) {op_role=1}
  tanh_grad(Out=t, Out@GRAD=t@GRAD) -> (X@GRAD=h@GRAD) {op_role=1}
  mul_grad(X=x, Y=w, Out@GRAD=h@GRAD) -> (Y@GRAD=w@GRAD) {op_role=1}
  sgd(Param=w, Grad=w@GRAD) -> (ParamOut=w) {op_role=2}
)";
  EXPECT_THAT(TryMake(Parse(text), {.micro_batches = 2}), IsOk());
  EXPECT_THAT(TryMake(Parse(text), {.micro_batches = 2, .schedule = ScheduleKind::kFThenB}),
              FailsWith(StatusCode::kUnimplemented, "op #5 tanh_grad: uses 't', which is"));
}

TEST(MicroBatchesTest, StagesAreOnDevicesOfTheirOwn) {
  const MicroBatchProgram made = Make({.micro_batches = 3,
                                       .schedule = ScheduleKind::k1F1B,
                                       .stages = 0,
                                       .place = {PlaceKind::kSim, 2}});
  EXPECT_EQ(made.schedule.stages, 2);
  EXPECT_EQ(JobsText(made), "F0@0 F1@0 F0@1 B0@1 B0@0 F1@1 B1@1 F2@0 B1@0 F2@1 B2@1 B2@0");
  for (const JobOps& job : made.jobs) {
    for (int32_t i = 0; i < job.num_ops; ++i) {
      EXPECT_THAT(Text(made.program, static_cast<size_t>(job.first_op + i)),
                  HasSubstr(absl::StrCat("op_device=\"sim:", 2 + job.job.stage, "\"")));
    }
  }
  const size_t last = made.program.blocks[0].ops.size() - 1;
  EXPECT_THAT(Text(made.program, last - 1), HasSubstr("op_device=\"sim:3\""));
  EXPECT_THAT(Text(made.program, last), HasSubstr("op_device=\"sim:2\""));
}

// By brute force: what a job writes and an op behind it reads.
TEST(MicroBatchesTest, JobsKeepWhatLaterOnesRead) {
  for (const ScheduleKind kind : {ScheduleKind::k1F1B, ScheduleKind::kFThenB}) {
    const MicroBatchProgram made = Make({.micro_batches = 4, .schedule = kind, .stages = 0});
    const Program& program = made.program;
    const std::vector<Op>& ops = program.blocks[0].ops;
    std::set<VarId> persistable;
    for (const Var& var : program.blocks[0].vars) {
      if (var.persistable) persistable.insert(var.id);
    }
    for (const JobOps& job : made.jobs) {
      std::set<VarId> written;
      std::set<VarId> needed;
      for (size_t i = job.first_op; i < ops.size(); ++i) {
        const bool within = static_cast<int32_t>(i) < job.first_op + job.num_ops;
        for (const VarId id : EachArgument(within ? ops[i].outputs : ops[i].inputs)) {
          if (within && !persistable.contains(id)) written.insert(id);
          if (!within && written.contains(id)) needed.insert(id);
        }
      }
      EXPECT_EQ(std::set<VarId>(job.keeps.begin(), job.keeps.end()), needed)
          << NameOf(made.schedule, job.job) << " of stage " << job.job.stage;
    }
  }
}

TEST(MicroBatchesTest, WhatCannotBeCutIsRefused) {
  const MicroBatchOptions two{.micro_batches = 2};
  const MicroBatchOptions stages{.micro_batches = 2, .stages = 0};
  EXPECT_THAT(TryMake(Step("  while(X=a) -> (Out=a) {sub_block=block:1}\n"
                           "block 1 parent=0\n"
                           "  relu(X=a) -> (Out=a)\n"),
                      two),
              FailsWith(StatusCode::kUnimplemented, "runs a block"));
  EXPECT_THAT(
      TryMake(Step("  scale(X=seen) -> (Out=h) {op_role=1, op_device=\"gpu:0\"}\n"), stages),
      FailsWith(StatusCode::kUnimplemented,
                "uses 'seen', which is persistable and written by another job"));
  EXPECT_THAT(TryMake(Step("  scale(X=seen) -> (Out=h) {op_role=1}\n"), two), IsOk());
  EXPECT_THAT(
      TryMake(Step("  scale(X=a) -> (Out=h) {op_role=2}\n"), two),
      FailsWith(StatusCode::kUnimplemented, "the update reads 'a', whose rows are samples"));
  EXPECT_THAT(
      TryMake(Step(), {.micro_batches = 2, .stages = 0, .place = {PlaceKind::kSim, 15}}),
      FailsWith(StatusCode::kInvalidArgument, "2 stages from sim:15 on need a device number 16"));
  EXPECT_THAT(
      TryMake(
          Step(),
          {.micro_batches = 2, .schedule = ScheduleKind::kInterleaved, .stages = 0, .chunks = 3}),
      FailsWith(StatusCode::kInvalidArgument, "no multiple of 3 chunks"));
}

}  // namespace
}  // namespace interp::micro_batches_test
