// The gradient of a parameter that the program itself overwrites: that of the value at the start
// and those of the values it gets, added up, as Paddle has them.
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/testing/matchers.h"

namespace interp::testing::overwritten_parameter_test {
namespace {

using ::testing::ElementsAre;

constexpr absl::string_view kVars =
    "block 0\n"
    "  var w float32[1] persistable param\n  var v float32[1] persistable param\n"
    "  var a float32[1]\n  var b float32[1]\n  var loss float32[1]\n"
    "  var zero int64[1] stop_gradient\n  var limit int64[1] stop_gradient\n"
    "  var go bool[1] stop_gradient\n  var steps step_scopes\n"
    "  fill_constant() -> (Out=zero) {shape=[1], dtype=3, value=0.0}\n";

std::string Limit(int limit) {
  return absl::StrCat("  fill_constant() -> (Out=limit) {shape=[1], dtype=3, value=", limit,
                      ".0}\n  less_than(X=zero, Y=limit) -> (Out=go)\n");
}

// The gradient of `name` where w is 3 and v is 2.
absl::StatusOr<std::vector<float>> GradientOf(const std::string& name, const std::string& ops) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(absl::StrCat(kVars, ops)));
  INTERP_ASSIGN_OR_RETURN(
      BackwardProgram backward,
      AppendBackward(std::move(program), {.loss = "loss"}, OpRegistry::Global()));
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Tensor::Of<float>({1}, std::vector<float>{3});
  scope->FindOrCreate("v")->tensor = Tensor::Of<float>({1}, std::vector<float>{2});
  INTERP_ASSIGN_OR_RETURN(const auto core,
                          InterpreterCore::Create(std::move(backward.program), {},
                                                  {absl::StrCat(name, "@GRAD")}, scope));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> results, core->Run({}));
  return Values<float>(results[0]);
}

void ExpectGradients(const std::string& ops, float of_w, float of_v) {
  const auto w = GradientOf("w", ops);
  ASSERT_THAT(w, IsOk());
  EXPECT_THAT(*w, ElementsAre(of_w));
  const auto v = GradientOf("v", ops);
  ASSERT_THAT(v, IsOk());
  EXPECT_THAT(*v, ElementsAre(of_v));
}

// loss = w0^2 w1, where w1 = v.
TEST(OverwrittenParameterTest, TheOldValueCountsBesideTheNew) {
  ExpectGradients(
      "  elementwise_mul(X=w, Y=w) -> (Out=a)\n"
      "  assign(X=v) -> (Out=w)\n"
      "  elementwise_mul(X=a, Y=w) -> (Out=loss)\n",
      12 + 9, 9);
}

// loss = w0^2 w1 w2, where w1 = v and w2 = 2 v.
TEST(OverwrittenParameterTest, EachOfThreeValuesCountsOnce) {
  ExpectGradients(
      "  elementwise_mul(X=w, Y=w) -> (Out=a)\n"
      "  assign(X=v) -> (Out=w)\n"
      "  elementwise_mul(X=a, Y=w) -> (Out=b)\n"
      "  scale(X=v) -> (Out=w) {scale=2.0}\n"
      "  elementwise_mul(X=b, Y=w) -> (Out=loss)\n",
      48 + 36 + 18, 36 + 2 * 18);
}

// loss = w0^2 w2, where w2 = v. Nothing reads w1, which `split` has written beside b.
TEST(OverwrittenParameterTest, AValueThatNothingReadsAddsNothing) {
  ExpectGradients(
      "  var two float32[2]\n"
      "  elementwise_mul(X=w, Y=w) -> (Out=a)\n"
      "  concat(X=[v, a]) -> (Out=two) {axis=0}\n"
      "  split(X=two) -> (Out=[w, b]) {num=2, axis=0}\n"
      "  assign(X=v) -> (Out=w)\n"
      "  elementwise_mul(X=b, Y=w) -> (Out=loss)\n",
      12 + 9, 9);
}

// loss = w0^2 (2 w0): the gradient of an update in place is that of the value before.
TEST(OverwrittenParameterTest, AnUpdateInPlaceHandsItsGradientOn) {
  ExpectGradients(
      "  elementwise_mul(X=w, Y=w) -> (Out=a)\n"
      "  scale(X=w) -> (Out=w) {scale=2.0}\n"
      "  elementwise_mul(X=a, Y=w) -> (Out=b)\n"
      "  elementwise_mul(X=b, Y=v) -> (Out=loss)\n",
      6 * 9 * 2, 54);
}

// loss = w0^2 w1, where w1 is v or w0.
TEST(OverwrittenParameterTest, ABranchAddsItsValueWhereItIsTaken) {
  const auto branch = [](int limit) {
    return absl::StrCat("  var scopes step_scopes\n", Limit(limit),
                        "  elementwise_mul(X=w, Y=w) -> (Out=a)\n"
                        "  conditional_block(Cond=go, Input=v) -> (Out=w, Scope=scopes) "
                        "{sub_block=block:1, is_scalar_condition=true}\n"
                        "  elementwise_mul(X=a, Y=w) -> (Out=loss)\n"
                        "block 1 parent=0\n"
                        "  assign(X=v) -> (Out=w)\n");
  };
  ExpectGradients(branch(1), 12 + 9, 9);
  ExpectGradients(branch(0), 27, 0);
}

// loss = w0^2 w2, where each of two trips makes w 2 v: the gradient is that of the value at the
// start. (Paddle 2.6.2 fails.)
TEST(OverwrittenParameterTest, ALoopDropsTheGradientOfWhatItMakesAnew) {
  ExpectGradients(
      absl::StrCat(Limit(2),
                   "  elementwise_mul(X=w, Y=w) -> (Out=a)\n"
                   "  while(Condition=go, X=[w, v, zero, limit]) -> (Out=[w, zero, go], "
                   "StepScopes=steps) {sub_block=block:1}\n"
                   "  elementwise_mul(X=a, Y=w) -> (Out=loss)\n"
                   "block 1 parent=0\n"
                   "  scale(X=v) -> (Out=w) {scale=2.0}\n"
                   "  increment(X=zero) -> (Out=zero) {step=1.0}\n"
                   "  less_than(X=zero, Y=limit) -> (Out=go)\n"),
      2 * 3 * 4, 9 * 2);
}

// loss = w0 w2, where each of two trips makes w v^2 of w: gradients of v read the w of each trip.
TEST(OverwrittenParameterTest, ALoopKeepsTheValueOfEachTrip) {
  ExpectGradients(
      absl::StrCat(Limit(2),
                   "  scale(X=w) -> (Out=a)\n"
                   "  while(Condition=go, X=[w, v, zero, limit]) -> (Out=[w, zero, go], "
                   "StepScopes=steps) {sub_block=block:1}\n"
                   "  elementwise_mul(X=a, Y=w) -> (Out=loss)\n"
                   "block 1 parent=0\n"
                   "  var s float32[1]\n  var next float32[1]\n"
                   "  elementwise_mul(X=v, Y=v) -> (Out=s)\n"
                   "  elementwise_mul(X=w, Y=s) -> (Out=next)\n"
                   "  assign(X=next) -> (Out=w)\n"
                   "  increment(X=zero) -> (Out=zero) {step=1.0}\n"
                   "  less_than(X=zero, Y=limit) -> (Out=go)\n"),
      2 * 3 * 16, 9 * 4 * 8);
}

}  // namespace
}  // namespace interp::testing::overwritten_parameter_test
