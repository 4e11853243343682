#include "passes/train/micro_batch_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "tests/testing/matchers.h"

namespace interp::micro_batch_analysis_test {
namespace {

using absl::StatusCode;
using testing::FailsWith;
using testing::IsOk;

absl::Status Check(const std::string& text) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  return CheckTurns(*program, {"x"}, OpRegistry::Global());
}

// A step of which `backward` is a part, with `update` before that of w.
std::string Step(const std::string& backward, const std::string& update) {
  return absl::StrCat(R"(block 0
  var x float32[-1,8] check_feed
  var w float32[8,8] param
  var acc float32[8,8] persistable
  var seen int64[1] persistable
  var h float32[-1,8]
  var g float32[8,8]
  mul(X=x, Y=w) -> (Out=h)
  mul_grad(X=x, Y=w, Out@GRAD=h) -> (Y@GRAD=g) {op_role=1}
)",
                      backward, update, "  sgd(Param=w, Grad=g) -> (ParamOut=w) {op_role=2}\n");
}

TEST(CheckTurnsTest, WhatRunsDoNotShareIsRefused) {
  EXPECT_THAT(Check(Step("", "")), IsOk());
  EXPECT_THAT(Check(Step("  sum(X=[acc, g]) -> (Out=acc) {op_role=1}\n",
                         "  sgd(Param=w, Grad=acc) -> (ParamOut=w) {op_role=2}\n")),
              FailsWith(StatusCode::kUnimplemented,
                        "'acc', a persistable variable that the backward part changes: "
                        "micro-batches would each add"));
  EXPECT_THAT(Check(Step("", "  scale(X=h) -> (Out=k) {op_role=2}\n")),
              FailsWith(StatusCode::kUnimplemented,
                        "'h', whose rows are samples: micro-batches have some each"));
}

TEST(CheckTurnsTest, CountersOfTheBackwardPartCount) {
  const std::string count = "  increment(X=seen) -> (Out=seen) {op_role=1}\n";
  EXPECT_THAT(Check(Step(count, "")), IsOk());
  EXPECT_THAT(Check(Step(count, "  scale(X=seen) -> (Out=k) {op_role=2}\n")),
              FailsWith(StatusCode::kUnimplemented, "the update reads 'seen', a persistable"));
}

// Blocks need not list what they use as inputs and outputs of the op that runs them.
absl::Status CheckTurnsOfLoop(const std::string& block, const std::string& update,
                              const std::string& of_update = "") {
  const std::string text = absl::StrCat(R"(block 0
  var x float32[-1,8] check_feed
  var w float32[8] param
  var seen float32[1] persistable
  var kf float32[1]
  var g float32[8]
  loop() -> (Out=left) {sub_block=block:1}
  loop() -> (Out=left) {sub_block=block:2, op_role=1}
)",
                                        update,
                                        R"(  sgd(Param=w, Grad=g) -> (ParamOut=w) {op_role=2}
block 1 parent=0
)",
                                        block, R"(block 2 parent=0
  scale(X=w) -> (Out=g) {op_role=1}
block 3 parent=0
  scale(X=w) -> (Out=w) {op_role=2}
)",
                                        of_update);
  return Check(text);
}

TEST(CheckTurnsTest, WhatBlocksWriteCountsInTurns) {
  const std::string count = "  increment(X=seen) -> (Out=seen)\n";
  EXPECT_THAT(CheckTurnsOfLoop(count, ""), IsOk());
  EXPECT_THAT(
      CheckTurnsOfLoop("  scale(X=w) -> (Out=kf)\n", "  scale(X=kf) -> (Out=k) {op_role=2}\n"),
      IsOk());
  const auto seen_is_refused =
      FailsWith(StatusCode::kUnimplemented, "the update reads 'seen', a persistable variable");
  EXPECT_THAT(CheckTurnsOfLoop(count, "  scale(X=seen) -> (Out=k) {op_role=2}\n"), seen_is_refused);
  EXPECT_THAT(CheckTurnsOfLoop(count, "  loop() -> (Out=k) {sub_block=block:3, op_role=2}\n",
                               "  scale(X=seen) -> (Out=k) {op_role=2}\n"),
              seen_is_refused);
  EXPECT_THAT(CheckTurnsOfLoop(count + "  scale(X=seen) -> (Out=kf)\n",
                               "  scale(X=kf) -> (Out=k) {op_role=2}\n"),
              FailsWith(StatusCode::kUnimplemented, "'kf', made of a persistable variable that"));
}

}  // namespace
}  // namespace interp::micro_batch_analysis_test
