// What AppendBackward refuses, since the gradient would read another value than the op did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op_def.h"
#include "core/program_parse.h"
#include "passes/append_backward.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

absl::Status BackwardOf(const std::string& text) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  return AppendBackward(*program, {.loss = "loss"}, OpRegistry::Global()).status();
}

const auto kWrittenAgain = FailsWith(absl::StatusCode::kInvalidArgument, "writes it again");

// A loop of three trips over `body`, which adds `y` to `acc`.
std::string Loop(const std::string& vars, const std::string& carried, const std::string& body) {
  return absl::StrCat(
      "block 0\n  var w float64[4,2] persistable param\n  var i int64[1] stop_gradient\n"
      "  var n int64[1] stop_gradient\n  var acc float64[1,2]\n  var go bool[1] stop_gradient\n"
      "  var steps step_scopes\n  var loss float64[1]\n",
      vars,
      "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
      "  fill_constant() -> (Out=n) {shape=[1], dtype=3, value=3.0}\n"
      "  fill_constant() -> (Out=acc) {shape=[1, 2], dtype=6, value=0.0}\n"
      "  less_than(X=i, Y=n) -> (Out=go)\n"
      "  while(X=[i, n, w, acc, ",
      carried, "], Condition=go) -> (Out=[i, acc, go, ", carried,
      "], StepScopes=steps) {sub_block=block:1, is_test=false}\n"
      "  mean(X=acc) -> (Out=loss)\n"
      "block 1 parent=0\n  var y float64[1,2]\n  var sum float64[1,2]\n",
      body,
      "  elementwise_add(X=acc, Y=y) -> (Out=sum)\n  assign(X=sum) -> (Out=acc)\n"
      "  increment(X=i) -> (Out=i) {step=1.0}\n  less_than(X=i, Y=n) -> (Out=go)\n");
}

// Only `increment` has a gradient that counts back.
TEST(GradientRefusalTest, OfAFloatThatALoopScalesInPlace) {
  EXPECT_THAT(BackwardOf(Loop("  var t float64[1] stop_gradient\n  var row float64[1,2]\n"
                              "  fill_constant() -> (Out=t) {shape=[1], dtype=6, value=1.0}\n",
                              "t",
                              "  scale(X=t) -> (Out=t) {scale=0.5}\n"
                              "  gather(X=w, Index=i) -> (Out=row)\n"
                              "  elementwise_mul(X=row, Y=t) -> (Out=y)\n")),
              kWrittenAgain);
}

TEST(GradientRefusalTest, OfAnIndexThatATripHasWrittenBefore) {
  const std::string outside = "  var at int64[1] stop_gradient\n";
  const std::string fill = "  fill_constant() -> (Out=at) {shape=[1], dtype=3, value=3.0}\n";
  const std::string gather = "  gather(X=w, Index=at) -> (Out=y)\n";
  EXPECT_THAT(BackwardOf(Loop(outside + fill, "at", "  assign(X=i) -> (Out=at)\n" + gather)),
              kWrittenAgain);
  // What the trip started with is kept.
  EXPECT_THAT(BackwardOf(Loop(outside + fill, "at", gather + "  assign(X=i) -> (Out=at)\n")),
              IsOk());
}

// Only the last trip's steps are left.
TEST(GradientRefusalTest, OfABranchWhoseStepsLieOutsideItsLoop) {
  const std::string branch =
      "  less_than(X=i, Y=n) -> (Out=yes)\n  gather(X=w, Index=i) -> (Out=row)\n"
      "  conditional_block(Cond=yes, Input=row) -> (Out=y, Scope=inner) {sub_block=block:2, "
      "is_scalar_condition=true}\n";
  const auto with = [&](const std::string& outside, const std::string& inside) {
    return Loop(outside, "n",
                absl::StrCat("  var yes bool[1] stop_gradient\n  var row float64[1,2]\n", inside,
                             branch)) +
           "block 2 parent=1\n  var t float64[1,2]\n"
           "  square(X=row) -> (Out=t)\n  assign(X=t) -> (Out=y)\n";
  };
  EXPECT_THAT(BackwardOf(with("", "  var inner step_scopes\n")), IsOk());
  EXPECT_THAT(BackwardOf(with("  var inner step_scopes\n", "")), kWrittenAgain);
}

// In test mode it leaves its averages as they are, not X.
TEST(GradientRefusalTest, OfABatchNormOfRunningAveragesInPlace) {
  const auto with = [](absl::string_view y) {
    return absl::StrCat(
        "block 0\n  var w float64[2,3] persistable param\n  var v float64[2,3]\n"
        "  var y float64[2,3]\n  var s float64[3] persistable param\n"
        "  var b float64[3] persistable param\n"
        "  var m float64[3] persistable\n  var n float64[3] persistable\n"
        "  var sm float64[3]\n  var sv float64[3]\n  var loss float64[1]\n"
        "  sin(X=w) -> (Out=v)\n"
        "  batch_norm(X=v, Scale=s, Bias=b, Mean=m, Variance=n) -> (Y=",
        y,
        ", MeanOut=m, VarianceOut=n, SavedMean=sm, SavedVariance=sv) {use_global_stats=true}\n"
        "  mean(X=",
        y, ") -> (Out=loss)\n");
  };
  EXPECT_THAT(BackwardOf(with("y")), IsOk());
  EXPECT_THAT(BackwardOf(with("v")), kWrittenAgain);
}

}  // namespace
}  // namespace interp::testing
