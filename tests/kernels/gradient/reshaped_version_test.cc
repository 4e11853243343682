// Gradients of variables that a program overwrites with values of another shape: each gradient has
// the shape of its version. Paddle 2.6.2 takes the shape of the last one and gives other numbers.
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/testing/matchers.h"

namespace interp::testing::reshaped_version_test {
namespace {

constexpr double kW = 1.3;
constexpr double kV = 0.7;

// x is [w, w], s is 1.5 v. `go` holds for two trips of a loop, and is what a branch asks.
constexpr absl::string_view kStart =
    "block 0\n"
    "  var w float64[1] persistable param\n  var v float64[1] persistable param\n"
    "  var x float64[-1]\n  var s float64[1]\n  var loss float64[1]\n"
    "  var y float64[-1]\n  var t float64[-1]\n  var r float64[1]\n  var m float64[1]\n"
    "  var i int64[1] stop_gradient\n  var n int64[1] stop_gradient\n"
    "  var go bool[1] stop_gradient\n  var steps step_scopes\n"
    "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
    "  fill_constant() -> (Out=n) {shape=[1], dtype=3, value=2.0}\n"
    "  less_than(X=i, Y=n) -> (Out=go)\n"
    "  concat(X=[w, w]) -> (Out=x) {axis=0}\n"
    "  scale(X=v) -> (Out=s) {scale=1.5}\n";

// loss = s sum(x^2)
constexpr absl::string_view kEnd =
    "  elementwise_mul(X=x, Y=x) -> (Out=y)\n"
    "  reduce_sum(X=y) -> (Out=r) {dim=[0], keep_dim=true, reduce_all=true}\n"
    "  elementwise_mul(X=s, Y=r) -> (Out=loss)\n";

constexpr absl::string_view kLoop =
    "  while(Condition=go, X=[x, s, v, i, n]) -> (Out=[x, s, i, go], StepScopes=steps) "
    "{sub_block=block:1}\n";

constexpr absl::string_view kBranch =
    "  conditional_block(Cond=go, Input=[x, s, v]) -> (Out=[x, s], Scope=steps) "
    "{sub_block=block:1, is_scalar_condition=true}\n";

constexpr absl::string_view kBlock = "block 1 parent=0\n  var z float64[-1]\n  var q float64[1]\n";

constexpr absl::string_view kNext =
    "  increment(X=i) -> (Out=i) {step=1.0}\n"
    "  less_than(X=i, Y=n) -> (Out=go)\n";

// x becomes [v, v, v].
constexpr absl::string_view kNewX = "  concat(X=[v, v, v]) -> (Out=x) {axis=0}\n";

// s becomes s mean(x), the gradient of which reads no more than the shape of x.
constexpr absl::string_view kReadX =
    "  reduce_mean(X=x) -> (Out=m) {dim=[0], keep_dim=true, reduce_all=true}\n"
    "  elementwise_mul(X=s, Y=m) -> (Out=s)\n";

absl::StatusOr<double> Fetch(const Program& program, const std::string& name, double w, double v) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Tensor::Of<double>({1}, std::vector<double>{w});
  scope->FindOrCreate("v")->tensor = Tensor::Of<double>({1}, std::vector<double>{v});
  INTERP_ASSIGN_OR_RETURN(const auto core, InterpreterCore::Create(program, {}, {name}, scope));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> results, core->Run({}));
  return Values<double>(results[0])[0];
}

double LossOf(const Program& program, double w, double v) {
  const auto loss = Fetch(program, "loss", w, v);
  EXPECT_THAT(loss, IsOk());
  return loss.ok() ? *loss : 0;
}

// Of w and v, as finite differences have them.
void ExpectGradients(const std::string& ops) {
  const auto program = ParseProgram(absl::StrCat(kStart, ops));
  ASSERT_THAT(program, IsOk());
  constexpr double kStep = 1e-6;
  const auto slope = [&](double w, double v) {
    return (LossOf(*program, kW + w, kV + v) - LossOf(*program, kW - w, kV - v)) / (2 * kStep);
  };
  const auto backward = AppendBackward(*program, {.loss = "loss"}, OpRegistry::Global());
  ASSERT_THAT(backward, IsOk());
  const auto of_w = Fetch(backward->program, "w@GRAD", kW, kV);
  ASSERT_THAT(of_w, IsOk());
  EXPECT_NEAR(*of_w, slope(kStep, 0), 1e-6);
  const auto of_v = Fetch(backward->program, "v@GRAD", kW, kV);
  ASSERT_THAT(of_v, IsOk());
  EXPECT_NEAR(*of_v, slope(0, kStep), 1e-6);
}

TEST(ReshapedVersionTest, ABlockOverwritesWhatItHasRead) {
  ExpectGradients(absl::StrCat(kReadX, kNewX, kEnd));
}

TEST(ReshapedVersionTest, OfAnOutputWithoutGradient) {
  ExpectGradients(
      absl::StrCat("  concat(X=[w, w, v, v]) -> (Out=t) {axis=0}\n"
                   "  split(X=t) -> (Out=[x, y]) {num=2, axis=0}\n"
                   "  reduce_mean(X=y) -> (Out=m) {dim=[0], keep_dim=true, reduce_all=true}\n"
                   "  elementwise_mul(X=s, Y=m) -> (Out=s)\n",
                   kNewX, kEnd));
}

TEST(ReshapedVersionTest, ALoopOverwritesWhatItHasRead) {
  ExpectGradients(absl::StrCat(kLoop, kEnd, kBlock, kReadX, kNewX, kNext));
}

TEST(ReshapedVersionTest, ALoopReadsWhatItHasOverwritten) {
  ExpectGradients(absl::StrCat(kLoop, kEnd, kBlock, kNewX, kReadX, kNext));
}

TEST(ReshapedVersionTest, ATripOverwritesTwice) {
  ExpectGradients(absl::StrCat(kLoop, kEnd, kBlock, kReadX, kNewX, kReadX,
                               "  concat(X=[x, v]) -> (Out=z) {axis=0}\n"
                               "  assign(X=z) -> (Out=x)\n",
                               kReadX, kNext));
}

TEST(ReshapedVersionTest, ABranchOverwritesBeforeItReads) {
  ExpectGradients(absl::StrCat(kReadX, kBranch, kEnd, kBlock, kNewX, kReadX));
}

TEST(ReshapedVersionTest, ABranchOverwritesWhatItHasRead) {
  ExpectGradients(absl::StrCat(kReadX, kBranch, kEnd, kBlock, kReadX, kNewX));
}

// t has no value where the branch is not taken, and is written later.
TEST(ReshapedVersionTest, ABranchThatIsNotTakenHasGivenNothing) {
  ExpectGradients(
      absl::StrCat("  less_than(X=n, Y=i) -> (Out=go)\n"
                   "  conditional_block(Cond=go, Input=[x, s, v]) -> (Out=[s, t], Scope=steps) "
                   "{sub_block=block:1, is_scalar_condition=true}\n"
                   "  concat(X=[w, v]) -> (Out=t) {axis=0}\n"
                   "  elementwise_mul(X=x, Y=t) -> (Out=x)\n",
                   kEnd, kBlock,
                   "  scale(X=x) -> (Out=t) {scale=2.0}\n"
                   "  reduce_mean(X=t) -> (Out=m) {dim=[0], keep_dim=true, reduce_all=true}\n"
                   "  elementwise_mul(X=s, Y=m) -> (Out=q)\n"
                   "  assign(X=q) -> (Out=s)\n"));
}

// The branch names t as an input, too, before anybody has written it.
TEST(ReshapedVersionTest, ABranchWritesWhatHadNoValue) {
  ExpectGradients(
      absl::StrCat("  conditional_block(Cond=go, Input=[x, s, v, t]) -> (Out=[s, t], Scope=steps) "
                   "{sub_block=block:1, is_scalar_condition=true}\n"
                   "  elementwise_mul(X=x, Y=t) -> (Out=x)\n",
                   kEnd, kBlock,
                   "  scale(X=x) -> (Out=t) {scale=2.0}\n"
                   "  elementwise_mul(X=s, Y=v) -> (Out=q)\n"
                   "  assign(X=q) -> (Out=s)\n"));
}

TEST(ReshapedVersionTest, ABranchReadsInVain) {
  ExpectGradients(absl::StrCat(kReadX,
                               "  conditional_block(Cond=go, Input=[x, v]) -> (Out=x, Scope=steps) "
                               "{sub_block=block:1, is_scalar_condition=true}\n",
                               kEnd, kBlock, "  scale(X=x) -> (Out=z) {scale=2.0}\n", kNewX));
}

TEST(ReshapedVersionTest, ABranchWritesInVain) {
  ExpectGradients(absl::StrCat(kReadX, kBranch, "  scale(X=s) -> (Out=loss)\n", kBlock,
                               "  elementwise_mul(X=s, Y=v) -> (Out=q)\n"
                               "  assign(X=q) -> (Out=s)\n"
                               "  concat(X=[x, v]) -> (Out=z) {axis=0}\n"
                               "  assign(X=z) -> (Out=x)\n"));
}

TEST(ReshapedVersionTest, ABranchThatIsSkippedLeavesTheShape) {
  ExpectGradients(absl::StrCat("  less_than(X=n, Y=i) -> (Out=go)\n", kReadX, kBranch, kEnd, kBlock,
                               kReadX, kNewX));
}

TEST(ReshapedVersionTest, ASkippedBranchHasReadIt) {
  ExpectGradients(absl::StrCat("  less_than(X=n, Y=i) -> (Out=go)\n", kBranch, kNewX, kEnd, kBlock,
                               "  reduce_mean(X=x) -> (Out=q) {dim=[0], keep_dim=true, "
                               "reduce_all=true}\n  assign(X=q) -> (Out=s)\n"));
}

TEST(ReshapedVersionTest, ABranchOfOneTripOverwrites) {
  ExpectGradients(
      absl::StrCat(kLoop, kEnd, kBlock,
                   "  var first bool[1] stop_gradient\n  var zero int64[1] stop_gradient\n"
                   "  var scopes step_scopes\n"
                   "  fill_constant() -> (Out=zero) {shape=[1], dtype=3, value=0.0}\n"
                   "  equal(X=i, Y=zero) -> (Out=first)\n"
                   "  conditional_block(Cond=first, Input=v) -> (Out=x, Scope=scopes) "
                   "{sub_block=block:2, is_scalar_condition=true}\n",
                   kReadX, kNext, "block 2 parent=1\n", kNewX));
}

}  // namespace
}  // namespace interp::testing::reshaped_version_test
