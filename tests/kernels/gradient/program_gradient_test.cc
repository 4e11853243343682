// Backward parts that AppendBackward makes for whole programs, against finite differences: arrays
// whose elements are read while others are written, branches that overwrite values, states of loops
// and losses of complex numbers.
// Long because each case is a program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

struct Case {
  std::string name;
  std::string vars;  // beside w, loss, i0 to i2
  std::string ops;   // from w float64[2,3] to loss float64[1]
};

std::string TextOf(const Case& test) {
  std::string text =
      "block 0\n  var w float64[2,3] persistable param\n  var loss float64[1]\n"
      "  var i0 int64[1] stop_gradient\n  var i1 int64[1] stop_gradient\n"
      "  var i2 int64[1] stop_gradient\n";
  absl::StrAppend(&text, test.vars);
  for (int i = 0; i < 3; ++i) {
    absl::StrAppend(&text, "  fill_constant() -> (Out=i", i, ") {shape=[1], dtype=3, value=", i,
                    ".0}\n");
  }
  return absl::StrCat(text, test.ops);
}

Tensor StartOf(int64_t changed, double by) {
  std::vector<double> values = {0.3, -0.7, 0.9, 1.1, -0.2, 0.5};
  if (changed >= 0) values[changed] += by;
  return Tensor::Of<double>({2, 3}, values);
}

std::vector<double> ValuesOf(const Program& program, const std::string& fetch, const Tensor& w) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = w;
  const auto core = InterpreterCore::Create(program, {}, {fetch}, scope);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  const auto results = (*core)->Run({});
  EXPECT_THAT(results, IsOk());
  return results.ok() ? Values<double>((*results)[0]) : std::vector<double>();
}

class ProgramGradientTest : public ::testing::TestWithParam<Case> {};

TEST_P(ProgramGradientTest, IsThatOfFiniteDifferences) {
  const absl::StatusOr<Program> program = ParseProgram(TextOf(GetParam()));
  ASSERT_THAT(program, IsOk());
  const auto backward = AppendBackward(*program, {.loss = "loss"}, OpRegistry::Global());
  ASSERT_THAT(backward, IsOk());
  const std::vector<double> gradient = ValuesOf(backward->program, "w@GRAD", StartOf(-1, 0));
  ASSERT_EQ(gradient.size(), 6u);
  for (int64_t i = 0; i < 6; ++i) {
    constexpr double kStep = 1e-6;
    const std::vector<double> more = ValuesOf(*program, "loss", StartOf(i, kStep));
    const std::vector<double> less = ValuesOf(*program, "loss", StartOf(i, -kStep));
    ASSERT_EQ(more.size(), 1u);
    EXPECT_NEAR(gradient[i], (more[0] - less[0]) / (2 * kStep), 1e-7) << i;
  }
}

// A variable that an op reads before the loop that carries it.
Case ReadBeforeItsLoop() {
  return {"IsReadBeforeItsLoop",
          "  var x float64[2,3]\n  var y float64[2,3]\n  var t float64[2,3]\n"
          "  var more bool[1] stop_gradient\n  var steps step_scopes\n",
          "  sin(X=w) -> (Out=x)\n"
          "  tanh(X=x) -> (Out=y)\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, i0, i2]) -> (Out=[x, i0, more], StepScopes=steps) "
          "{sub_block=block:1, is_test=false}\n"
          "  elementwise_mul(X=x, Y=y) -> (Out=t)\n"
          "  mean(X=t) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  var s float64[2,3]\n"
          "  sin(X=x) -> (Out=s)\n"
          "  assign(X=s) -> (Out=x)\n"
          "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// A trip, in which p becomes what x was.
const std::string kTripOfTwoStates =
    "  var sum float64[2,3]\n  var t float64[2,3]\n  var q float64[2,3]\n"
    "  elementwise_add(X=x, Y=p) -> (Out=sum)\n"
    "  tanh(X=sum) -> (Out=t)\n"
    "  scale(X=x) -> (Out=q) {scale=1.5}\n"
    "  assign(X=t) -> (Out=x)\n"
    "  assign(X=q) -> (Out=p)\n";

// A state that starts as a constant, which is marked, and is what another one was before.
Case StateThatStartsAsAConstant() {
  return {"IsAStateThatStartsAsAConstant",
          "  var x float64[2,3]\n  var p float64[2,3] stop_gradient\n"
          "  var more bool[1] stop_gradient\n  var steps step_scopes\n",
          "  sin(X=w) -> (Out=x)\n"
          "  fill_constant() -> (Out=p) {shape=[2, 3], dtype=6, value=0.25}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, p, i0, i2]) -> (Out=[x, p, i0, more], StepScopes=steps) "
          "{sub_block=block:1, is_test=false}\n"
          "  mean(X=x) -> (Out=loss)\n"
          "block 1 parent=0\n" +
              kTripOfTwoStates +
              "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
              "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// Two that start as constants: one is what the other one was. A third is made in each trip.
Case StatesThatShift() {
  return {"IsOfStatesThatShift",
          "  var x float64[2,3] stop_gradient\n  var p float64[2,3] stop_gradient\n"
          "  var r float64[2,3] stop_gradient\n"
          "  var more bool[1] stop_gradient\n  var steps step_scopes\n  var both float64[2,3]\n",
          "  fill_constant() -> (Out=x) {shape=[2, 3], dtype=6, value=0.5}\n"
          "  fill_constant() -> (Out=p) {shape=[2, 3], dtype=6, value=0.25}\n"
          "  fill_constant() -> (Out=both) {shape=[2, 3], dtype=6, value=0.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, p, r, w, both, i0, i1, i2]) -> "
          "(Out=[x, p, r, both, i0, more], StepScopes=steps) "
          "{sub_block=block:1, is_test=false}\n"
          "  mean(X=both) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  var sum float64[2,3]\n  var t float64[2,3]\n  var q float64[2,3]\n"
          "  elementwise_add(X=x, Y=p) -> (Out=sum)\n"
          "  elementwise_mul(X=sum, Y=w) -> (Out=t)\n"
          "  elementwise_add(X=both, Y=t) -> (Out=q)\n"
          "  assign(X=x) -> (Out=p)\n"
          "  assign(X=t) -> (Out=x)\n"
          "  scale(X=t) -> (Out=r) {scale=2.0}\n"
          "  assign(X=q) -> (Out=both)\n"
          "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// The same in a loop within a loop.
Case StateOfTwoLoops() {
  return {
      "IsAStateOfTwoLoops",
      "  var x float64[2,3]\n  var p float64[2,3] stop_gradient\n  var j int64[1] stop_gradient\n"
      "  var more bool[1] stop_gradient\n  var steps step_scopes\n",
      "  sin(X=w) -> (Out=x)\n"
      "  fill_constant() -> (Out=p) {shape=[2, 3], dtype=6, value=0.25}\n"
      "  less_than(X=i0, Y=i2) -> (Out=more)\n"
      "  while(Condition=more, X=[x, p, i0, i1, i2]) -> (Out=[x, p, i0, more], StepScopes=steps) "
      "{sub_block=block:1, is_test=false}\n"
      "  mean(X=x) -> (Out=loss)\n"
      "block 1 parent=0\n"
      "  var again bool[1] stop_gradient\n  var inner_steps step_scopes\n"
      "  var k int64[1] stop_gradient\n"
      "  assign(X=i1) -> (Out=k)\n"
      "  less_equal(X=k, Y=i2) -> (Out=again)\n"
      "  while(Condition=again, X=[x, p, k, i2]) -> (Out=[x, p, k, again], "
      "StepScopes=inner_steps) {sub_block=block:2, is_test=false}\n"
      "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
      "  less_than(X=i0, Y=i2) -> (Out=more)\n"
      "block 2 parent=1\n" +
          kTripOfTwoStates +
          "  increment(X=k) -> (Out=k) {step=1.0}\n"
          "  less_equal(X=k, Y=i2) -> (Out=again)\n"};
}

// A loop in a branch, and what the branch makes of the state then.
Case StateOfALoopInABranch() {
  return {"IsAStateOfALoopInABranch",
          "  var x float64[2,3]\n  var p float64[2,3] stop_gradient\n  var y float64[2,3]\n"
          "  var yes bool[1] stop_gradient\n  var scope step_scopes\n",
          "  sin(X=w) -> (Out=x)\n"
          "  fill_constant() -> (Out=p) {shape=[2, 3], dtype=6, value=0.25}\n"
          "  less_than(X=i0, Y=i2) -> (Out=yes)\n"
          "  conditional_block(Cond=yes, Input=[x, p, i0, i2]) -> (Out=[x, p, y, i0], Scope=scope) "
          "{sub_block=block:1, is_scalar_condition=true}\n"
          "  mean(X=y) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  var more bool[1] stop_gradient\n  var steps step_scopes\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, p, i0, i2]) -> (Out=[x, p, i0, more], StepScopes=steps) "
          "{sub_block=block:2, is_test=false}\n"
          "  elementwise_mul(X=p, Y=p) -> (Out=y)\n"
          "block 2 parent=1\n" +
              kTripOfTwoStates +
              "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
              "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// One that a branch overwrites and then reads.
Case StateOfABranch() {
  return {"IsAStateOfABranch",
          "  var p float64[2,3] stop_gradient\n  var y float64[2,3]\n"
          "  var yes bool[1] stop_gradient\n  var scope step_scopes\n",
          "  fill_constant() -> (Out=p) {shape=[2, 3], dtype=6, value=0.25}\n"
          "  less_than(X=i0, Y=i2) -> (Out=yes)\n"
          "  conditional_block(Cond=yes, Input=w) -> (Out=[p, y], Scope=scope) "
          "{sub_block=block:1, is_scalar_condition=true}\n"
          "  mean(X=y) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  sin(X=w) -> (Out=p)\n"
          "  elementwise_mul(X=p, Y=w) -> (Out=y)\n"};
}

// The sign of what share_data detaches from a state is that of what the trip before wrote.
Case DetachedFromAState() {
  return {"IsDetachedFromAState",
          "  var p float64[2,3] stop_gradient\n  var x float64[2,3]\n"
          "  var d float64[2,3] stop_gradient\n"
          "  var more bool[1] stop_gradient\n  var steps step_scopes\n",
          "  sin(X=w) -> (Out=x)\n"
          "  fill_constant() -> (Out=p) {shape=[2, 3], dtype=6, value=0.25}\n"
          "  share_data(X=p) -> (Out=d)\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, p, d, i0, i2]) -> (Out=[x, p, i0, more], "
          "StepScopes=steps) {sub_block=block:1, is_test=false}\n"
          "  mean(X=x) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  var s float64[2,3] stop_gradient\n  var t float64[2,3]\n  var u float64[2,3]\n"
          "  var q float64[2,3]\n"
          "  sign(X=d) -> (Out=s)\n"
          "  elementwise_mul(X=x, Y=s) -> (Out=t)\n"
          "  elementwise_add(X=t, Y=p) -> (Out=u)\n"
          "  scale(X=x) -> (Out=q) {scale=-1.5}\n"
          "  assign(X=u) -> (Out=x)\n"
          "  assign(X=q) -> (Out=p)\n"
          "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// `out` and `state` are what names of h have become.
Case Recurrence(const std::string& name, const std::string& out, const std::string& state) {
  return {name,
          "  var x float64[2,3]\n  var start float64[3]\n  var o float64[2,3]\n"
          "  var steps step_scopes\n  var h float64[2,3]\n",
          "  sin(X=w) -> (Out=x)\n"
          "  reduce_sum(X=x) -> (Out=start) {dim=[0]}\n"
          "  recurrent(inputs=x, initial_states=start, parameters=w) -> (outputs=" +
              out + ", step_scopes=steps) {sub_block=block:1, states=[\"" + state +
              "\"], ex_states=[\"p\"], is_train=true, reverse=true}\n  mean(X=" + out +
              ") -> (Out=loss)\n"
              "block 1 parent=0\n"
              "  var x float64[3]\n  var p float64[3]\n  var h float64[3]\n  var o float64[3]\n"
              "  var s float64[3]\n"
              "  elementwise_mul(X=x, Y=p) -> (Out=s)\n"
              "  tanh(X=s) -> (Out=h)\n"
              "  scale(X=h) -> (Out=o) {scale=2.0}\n"};
}

// A loop that writes v by `body`, of which the last op gives `v` again.
Case WrittenInATrip(const std::string& name, const std::string& body) {
  return {name, "  var v float64[2,3]\n  var more bool[1]\n  var steps step_scopes\n",
          "  sin(X=w) -> (Out=v)\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(X=[v, w, i0, i2, more], Condition=more) -> (Out=[v, i0, more], "
          "StepScopes=steps) {sub_block=block:1}\n"
          "  mean(X=v) -> (Out=loss)\n"
          "block 1 parent=0\n  var q float64[2,3]\n  var r float64[2,3]\n" +
              body +
              "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
              "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// Each trip scales t in place and multiplies x by it.
Case ScaledInPlaceInALoop() {
  return {"AFactorThatALoopScalesInPlace",
          "  var x float64[2,3]\n  var t float64[1] stop_gradient\n"
          "  var more bool[1] stop_gradient\n  var steps step_scopes\n",
          "  sin(X=w) -> (Out=x)\n"
          "  fill_constant() -> (Out=t) {shape=[1], dtype=6, value=1.5}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, t, i0, i2]) -> (Out=[x, t, i0, more], StepScopes=steps) "
          "{sub_block=block:1, is_test=false}\n"
          "  mean(X=x) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  var u float64[2,3]\n  var s float64[2,3]\n"
          "  scale(X=t) -> (Out=t) {scale=0.5}\n"
          "  elementwise_mul(X=x, Y=t) -> (Out=u)\n"
          "  sin(X=u) -> (Out=s)\n"
          "  assign(X=s) -> (Out=x)\n"
          "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// An index outside the loop that each trip writes before it reads it.
Case IndexOfATrip() {
  return {"AnIndexThatATripHasWrittenBefore",
          "  var x float64[1,3]\n  var at int64[1] stop_gradient\n  var more bool[1] "
          "stop_gradient\n  var steps step_scopes\n",
          "  fill_constant() -> (Out=x) {shape=[1, 3], dtype=6, value=1.5}\n"
          "  fill_constant() -> (Out=at) {shape=[1], dtype=3, value=0.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, w, at, i0, i2]) -> (Out=[x, at, i0, more], "
          "StepScopes=steps) {sub_block=block:1, is_test=false}\n"
          "  mean(X=x) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  var row float64[1,3]\n  var s float64[1,3]\n"
          "  assign(X=i0) -> (Out=at)\n"
          "  gather(X=w, Index=at) -> (Out=row)\n"
          "  elementwise_mul(X=x, Y=row) -> (Out=s)\n"
          "  assign(X=s) -> (Out=x)\n"
          "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// A result that each trip makes afresh, read in the trip and behind the loop.
Case ResultOfTheLastTrip() {
  return {"IsAResultOfTheLastTrip",
          "  var x float64[2,3]\n  var y float64[2,3]\n  var t float64[2,3]\n"
          "  var more bool[1] stop_gradient\n  var steps step_scopes\n",
          "  sin(X=w) -> (Out=x)\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"
          "  while(Condition=more, X=[x, i0, i2]) -> (Out=[x, y, i0, more], StepScopes=steps) "
          "{sub_block=block:1, is_test=false}\n"
          "  elementwise_mul(X=x, Y=y) -> (Out=t)\n"
          "  mean(X=t) -> (Out=loss)\n"
          "block 1 parent=0\n"
          "  var s float64[2,3]\n"
          "  scale(X=x) -> (Out=y) {scale=2.0}\n"
          "  scale(X=y) -> (Out=s) {scale=1.5}\n"
          "  assign(X=s) -> (Out=x)\n"
          "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
          "  less_than(X=i0, Y=i2) -> (Out=more)\n"};
}

// NOLINTNEXTLINE(readability-function-size): a table.
std::vector<Case> ArrayCases() {
  return {
      {"ACounterThatNothingBringsBack",
       "  var a lod_tensor_array float64[2,3]\n  var g float64[2,3]\n  var q float64[2,3]\n",
       "  write_to_array(X=w, I=i0) -> (Out=a)\n"
       "  scale(X=i0) -> (Out=i0) {scale=1.0, bias=1.0}\n"
       "  increment(X=i0) -> (Out=i0) {step=-1.0}\n"
       "  read_from_array(X=a, I=i0) -> (Out=g)\n"
       "  elementwise_mul(X=g, Y=g) -> (Out=q)\n  mean(X=q) -> (Out=loss)\n"},
      {"ACounterGoesOnInALoop",
       "  var a lod_tensor_array float64[2,3]\n  var g float64[2,3]\n"
       "  var more bool[1] stop_gradient\n  var steps step_scopes\n",
       "  write_to_array(X=w, I=i0) -> (Out=a)\n"
       "  less_than(X=i0, Y=i2) -> (Out=more)\n"
       "  while(Condition=more, X=[a, i0, i2]) -> (Out=[a, i0, more], StepScopes=steps) "
       "{sub_block=block:1, is_test=false}\n"
       "  read_from_array(X=a, I=i0) -> (Out=g)\n"
       "  mean(X=g) -> (Out=loss)\n"
       "block 1 parent=0\n"
       "  var h float64[2,3]\n  var s float64[2,3]\n"
       "  read_from_array(X=a, I=i0) -> (Out=h)\n"
       "  sin(X=h) -> (Out=s)\n"
       "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
       "  write_to_array(X=s, I=i0) -> (Out=a)\n"
       "  less_than(X=i0, Y=i2) -> (Out=more)\n"},
      {"ACounterGoesOnOutsideOfLoops",
       "  var a lod_tensor_array float64[2,3]\n  var h float64[2,3]\n  var s float64[2,3]\n"
       "  var g float64[2,3]\n  var t float64[2,3]\n",
       "  write_to_array(X=w, I=i0) -> (Out=a)\n"
       "  sin(X=w) -> (Out=s)\n"
       "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
       "  write_to_array(X=s, I=i0) -> (Out=a)\n"
       "  increment(X=i0) -> (Out=i0) {step=-1.0}\n"
       "  read_from_array(X=a, I=i0) -> (Out=h)\n"
       "  read_from_array(X=a, I=i1) -> (Out=g)\n"
       "  elementwise_mul(X=g, Y=h) -> (Out=t)\n"
       "  mean(X=t) -> (Out=loss)\n"},
      {"AnElementIsReadBeforeTheNextIsWritten",
       "  var a lod_tensor_array float64[2,3]\n  var h float64[2,3]\n  var s float64[2,3]\n"
       "  var g float64[2,3]\n  var t float64[2,3]\n",
       "  write_to_array(X=w, I=i0) -> (Out=a)\n"
       "  read_from_array(X=a, I=i0) -> (Out=h)\n"
       "  sin(X=h) -> (Out=s)\n"
       "  write_to_array(X=s, I=i1) -> (Out=a)\n"
       "  read_from_array(X=a, I=i1) -> (Out=g)\n"
       "  tanh(X=g) -> (Out=t)\n"
       "  mean(X=t) -> (Out=loss)\n"},
      {"SumsOfElementsAreWrittenAndTheirPartsReadAgain",
       "  var a lod_tensor_array float64[2,3]\n  var h float64[2,3]\n  var k float64[2,3]\n"
       "  var s float64[2,3]\n  var g float64[2,3]\n  var e float64[2,3]\n  var b float64[2,3]\n"
       "  var t float64[2,3]\n",
       "  sin(X=w) -> (Out=s)\n"
       "  write_to_array(X=w, I=i0) -> (Out=a)\n"
       "  write_to_array(X=s, I=i1) -> (Out=a)\n"
       "  read_from_array(X=a, I=i0) -> (Out=h)\n"
       "  read_from_array(X=a, I=i1) -> (Out=k)\n"
       "  elementwise_mul(X=h, Y=k) -> (Out=b)\n"
       "  write_to_array(X=b, I=i2) -> (Out=a)\n"
       "  read_from_array(X=a, I=i2) -> (Out=g)\n"
       "  read_from_array(X=a, I=i1) -> (Out=e)\n"
       "  elementwise_mul(X=g, Y=e) -> (Out=t)\n"
       "  mean(X=t) -> (Out=loss)\n"},
  };
}

// What a branch overwrites is what it was before where the branch does not run.
std::vector<Case> BranchCases() {
  struct Branch {
    std::string name;
    std::string inputs;
    std::string ops;  // write v float64[2,3]
  };
  const Branch branches[] = {
      {"ThatReadsTheParameter", "w", "  sin(X=w) -> (Out=v)\n"},
      {"ThatReadsWhatItWrites", "v, w",
       "  tanh(X=v) -> (Out=t)\n  elementwise_mul(X=t, Y=w) -> (Out=v)\n"},
      {"ThatWritesAConstant", "w", "  fill_constant() -> (Out=v) {shape=[2,3], dtype=6}\n"}};
  std::vector<Case> cases;
  for (const Branch& branch : branches) {
    for (const bool taken : {false, true}) {
      const std::string condition =
          absl::StrCat("  less_than(X=i1, Y=i", taken ? 2 : 0, ") -> (Out=c)\n");
      const std::string name = absl::StrCat("ABranch", branch.name, taken ? "" : "NotTaken");
      const std::string block = absl::StrCat("  conditional_block(Cond=c, Input=[", branch.inputs,
                                             "]) -> (Out=v, Scope=scope) {sub_block=block:");
      const std::string vars =
          "  var v float64[2,3]\n  var u float64[2,3]\n  var y float64[2,3]\n"
          "  var z float64[2,3]\n  var c bool[1]\n  var scope step_scopes\n";
      const std::string result =
          "  elementwise_mul(X=v, Y=w) -> (Out=y)\n"
          "  elementwise_mul(X=y, Y=u) -> (Out=z)\n"
          "  mean(X=z) -> (Out=loss)\n";
      // `u` is another reader of the value before.
      cases.push_back({name, vars,
                       absl::StrCat("  sin(X=w) -> (Out=v)\n  tanh(X=v) -> (Out=u)\n", condition,
                                    block, "1, is_scalar_condition=true}\n", result,
                                    "block 1 parent=0\n  var t float64[2,3]\n", branch.ops)});
      cases.push_back(
          {absl::StrCat("ALoopOf", name), absl::StrCat(vars, "  var more bool[1]\n"),
           absl::StrCat("  sin(X=w) -> (Out=v)\n  tanh(X=v) -> (Out=u)\n"
                        "  less_than(X=i0, Y=i2) -> (Out=more)\n"
                        "  while(X=[v, w, i0, i1, i2, more], Condition=more) -> "
                        "(Out=[v, i0, more], StepScopes=scope) {sub_block=block:1}\n",
                        result,
                        "block 1 parent=0\n  var q float64[2,3]\n  var c bool[1]\n"
                        "  var scope1 step_scopes\n  var d bool[1]\n"
                        "  elementwise_add(X=v, Y=w) -> (Out=q)\n  assign(X=q) -> (Out=v)\n"
                        "  less_than(X=i0, Y=i1) -> (Out=d)\n",
                        taken ? "  assign(X=d) -> (Out=c)\n" : "  logical_not(X=d) -> (Out=c)\n",
                        "  conditional_block(Cond=c, Input=[", branch.inputs,
                        "]) -> (Out=v, Scope=scope1) {sub_block=block:2, "
                        "is_scalar_condition=true}\n"
                        "  increment(X=i0) -> (Out=i0) {step=1.0}\n"
                        "  less_than(X=i0, Y=i2) -> (Out=more)\n"
                        "block 2 parent=1\n  var t float64[2,3]\n",
                        branch.ops)});
    }
  }
  return cases;
}

// What is not the branch's value alone: a branch within a branch, the parameter itself, and
// conditions that change within the branch or behind it.
std::vector<Case> OddBranchCases() {
  const std::string vars =
      "  var v float64[2,3]\n  var y float64[2,3]\n  var c bool[1]\n  var d bool[1]\n"
      "  var scope step_scopes\n";
  const std::string yes = "  less_than(X=i0, Y=i1) -> (Out=c)\n";
  const std::string no = "  less_than(X=i1, Y=i0) -> (Out=d)\n";
  const std::string loss = "  elementwise_mul(X=v, Y=w) -> (Out=y)\n  mean(X=y) -> (Out=loss)\n";
  const std::string scalar = "is_scalar_condition=true}\n";
  const auto run = [&](absl::string_view condition, absl::string_view out) {
    return absl::StrCat("  conditional_block(Cond=", condition, ", Input=w) -> (Out=", out,
                        ", Scope=scope) {sub_block=block:1, ", scalar);
  };
  return {
      {"ABranchWithinABranchNotTaken", vars,
       absl::StrCat("  sin(X=w) -> (Out=v)\n", yes, no, run("c", "v"), loss,
                    "block 1 parent=0\n  var inner step_scopes\n"
                    "  conditional_block(Cond=d, Input=w) -> (Out=v, Scope=inner) "
                    "{sub_block=block:2, ",
                    scalar, "block 2 parent=1\n  square(X=w) -> (Out=v)\n")},
      {"AParameterThatABranchOverwritesNotTaken", vars,
       absl::StrCat(no, run("d", "w"), "  sin(X=w) -> (Out=y)\n  mean(X=y) -> (Out=loss)\n",
                    "block 1 parent=0\n  var t float64[2,3]\n"
                    "  tanh(X=w) -> (Out=t)\n  assign(X=t) -> (Out=w)\n")},
      // What the branch makes first has its gradient under the same name as what was there before.
      {"ABranchThatOverwritesTwice", vars,
       absl::StrCat("  sin(X=w) -> (Out=v)\n", yes,
                    "  conditional_block(Cond=c, Input=[v, w]) -> (Out=v, Scope=scope) "
                    "{sub_block=block:1, ",
                    scalar, loss,
                    "block 1 parent=0\n  var z float64[2,3]\n  var t float64[2,3]\n"
                    "  fill_any_like(X=v) -> (Out=z) {value=1.0, dtype=-1}\n"
                    "  elementwise_add(X=z, Y=w) -> (Out=t)\n  assign(X=t) -> (Out=v)\n"
                    "  scale(X=v) -> (Out=t) {scale=0.5}\n  assign(X=t) -> (Out=v)\n")},
      {"ABranchThatOverwritesItsCondition", vars,
       absl::StrCat("  sin(X=w) -> (Out=v)\n", yes, run("c", "[v, c]"), loss,
                    "block 1 parent=0\n  sin(X=w) -> (Out=v)\n"
                    "  less_than(X=i1, Y=i0) -> (Out=c)\n")},
      {"AConditionThatIsWrittenAgain", vars,
       absl::StrCat("  sin(X=w) -> (Out=v)\n", yes, run("c", "v"),
                    "  less_than(X=i1, Y=i0) -> (Out=c)\n", loss,
                    "block 1 parent=0\n  square(X=w) -> (Out=v)\n")},
  };
}

// NOLINTNEXTLINE(readability-function-size): a table.
std::vector<Case> OtherCases() {
  return {
      ReadBeforeItsLoop(),
      ResultOfTheLastTrip(),
      StateThatStartsAsAConstant(),
      StatesThatShift(),
      StateOfTwoLoops(),
      StateOfALoopInABranch(),
      StateOfABranch(),
      DetachedFromAState(),
      Recurrence("IsAStateOfARecurrence", "o", "h"),
      Recurrence("IsAStateThatIsTheOutput", "h", "h"),
      Recurrence("IsAnOutputThatIsTheState", "o", "o"),
      {"AGroupNormWithoutBias",
       "  var x float64[1,6,1,1]\n  var xs float64[0]\n  var s float64[2,3]\n"
       "  var ss float64[0]\n  var scale float64[6]\n  var y float64[1,6,1,1]\n"
       "  var m float64[1,2]\n  var v float64[1,2]\n  var t float64[1,6,1,1]\n",
       "  reshape2(X=w) -> (Out=x, XShape=xs) {shape=[1, 6, 1, 1]}\n"
       "  sin(X=w) -> (Out=s)\n"
       "  reshape2(X=s) -> (Out=scale, XShape=ss) {shape=[6]}\n"
       "  group_norm(X=x, Scale=scale) -> (Y=y, Mean=m, Variance=v) {groups=2, epsilon=0.00001}\n"
       "  elementwise_mul(X=y, Y=x) -> (Out=t)\n"
       "  mean(X=t) -> (Out=loss)\n"},
      {"AVariableAddedToItselfInPlace", "  var v float64[2,3]\n  var y float64[2,3]\n",
       "  sin(X=w) -> (Out=v)\n  elementwise_add(X=v, Y=v) -> (Out=v)\n"
       "  elementwise_mul(X=v, Y=w) -> (Out=y)\n  mean(X=y) -> (Out=loss)\n"},
      {"AnElementCountedInPlace", "  var s float64[1]\n  var t float64[1]\n  var y float64[1]\n",
       "  reduce_sum(X=w) -> (Out=s) {dim=[0, 1]}\n  tanh(X=s) -> (Out=t)\n"
       "  increment(X=t) -> (Out=t) {step=0.5}\n"
       "  elementwise_mul(X=t, Y=t) -> (Out=y)\n  mean(X=y) -> (Out=loss)\n"},
      // Its gradient reads what it overwrites.
      {"AValueClippedInPlace", "  var v float64[2,3]\n  var y float64[2,3]\n",
       "  sin(X=w) -> (Out=v)\n  clip(X=v) -> (Out=v) {min=-0.5, max=0.5}\n"
       "  elementwise_mul(X=v, Y=w) -> (Out=y)\n  mean(X=y) -> (Out=loss)\n"},
      {"AFactorThatIsWrittenAgain", "  var v float64[2,3]\n  var y float64[2,3]\n",
       "  sin(X=w) -> (Out=v)\n  elementwise_mul(X=v, Y=v) -> (Out=y)\n  mean(X=y) -> (Out=loss)\n"
       "  scale(X=y) -> (Out=v) {scale=2.0}\n"},
      {"AResultThatIsWrittenAgain",
       "  var v float64[2,3]\n  var y float64[2,3]\n  var z float64[2,3]\n",
       "  tanh(X=w) -> (Out=v)\n  scale(X=v) -> (Out=y) {scale=3.0}\n  square(X=y) -> (Out=v)\n"
       "  elementwise_add(X=v, Y=y) -> (Out=z)\n  mean(X=z) -> (Out=loss)\n"},
      WrittenInATrip("IsWhatATripFinds",
                     "  elementwise_mul(X=v, Y=w) -> (Out=q)\n  assign(X=q) -> (Out=v)\n"),
      WrittenInATrip("IsAssignedToItselfInATrip",
                     "  elementwise_mul(X=v, Y=w) -> (Out=q)\n  assign(X=v) -> (Out=v)\n"
                     "  tanh(X=q) -> (Out=r)\n  assign(X=r) -> (Out=v)\n"),
      WrittenInATrip("IsWhatATripHasWrittenBefore",
                     "  elementwise_add(X=v, Y=w) -> (Out=q)\n  assign(X=q) -> (Out=v)\n"
                     "  elementwise_mul(X=v, Y=w) -> (Out=r)\n  assign(X=r) -> (Out=v)\n"),
      WrittenInATrip("IsAResultOfATrip",
                     "  elementwise_add(X=v, Y=w) -> (Out=q)\n  tanh(X=q) -> (Out=v)\n"),
      ScaledInPlaceInALoop(),
      IndexOfATrip(),
      {"AValueThatABranchOverwritesAfterUse",
       "  var v float64[2,3]\n  var y float64[2,3]\n  var yes bool[1] stop_gradient\n"
       "  var scope step_scopes\n",
       "  sin(X=w) -> (Out=v)\n  less_than(X=i0, Y=i1) -> (Out=yes)\n"
       "  conditional_block(Cond=yes, Input=[v, w]) -> (Out=[v, y], Scope=scope) "
       "{sub_block=block:1, is_scalar_condition=true}\n  mean(X=y) -> (Out=loss)\n"
       "block 1 parent=0\n  var t float64[2,3]\n"
       "  elementwise_mul(X=v, Y=w) -> (Out=y)\n  scale(X=v) -> (Out=t) {scale=3.0}\n"
       "  assign(X=t) -> (Out=v)\n"},
      {"AValueScaledInPlaceBehindTheLoss", "  var v float64[2,3]\n",
       "  sin(X=w) -> (Out=v)\n  mean(X=v) -> (Out=loss)\n  scale(X=v) -> (Out=v) {scale=2.0}\n"},
      {"ABatchNormOfRunningAveragesInPlace",
       "  var v float64[2,3]\n  var s float64[3]\n  var b float64[3]\n  var m float64[3]\n"
       "  var n float64[3]\n  var sm float64[3]\n  var sv float64[3]\n  var q float64[2,3]\n",
       "  sin(X=w) -> (Out=v)\n"
       "  reduce_sum(X=w) -> (Out=s) {dim=[0]}\n"
       "  fill_constant() -> (Out=b) {shape=[3], dtype=6, value=0.5}\n"
       "  fill_constant() -> (Out=m) {shape=[3], dtype=6, value=0.25}\n"
       "  fill_constant() -> (Out=n) {shape=[3], dtype=6, value=1.0}\n"
       "  batch_norm(X=v, Scale=s, Bias=b, Mean=m, Variance=n) -> (Y=v, MeanOut=m, VarianceOut=n, "
       "SavedMean=sm, SavedVariance=sv) {epsilon=0.5, use_global_stats=true}\n"
       "  elementwise_mul(X=v, Y=w) -> (Out=q)\n  mean(X=q) -> (Out=loss)\n"},
      // Both move the same averages, which neither gradient reads.
      {"ABatchNormUsedTwice",
       "  var v float64[2,3]\n  var y float64[2,3]\n  var z float64[2,3]\n  var s float64[3]\n"
       "  var b float64[3]\n  var m float64[3]\n  var n float64[3]\n  var q float64[2,3]\n"
       "  var sm float64[3]\n  var sv float64[3]\n  var tm float64[3]\n  var tv float64[3]\n",
       "  sin(X=w) -> (Out=v)\n"
       "  fill_constant() -> (Out=s) {shape=[3], dtype=6, value=1.5}\n"
       "  fill_constant() -> (Out=b) {shape=[3], dtype=6, value=0.5}\n"
       "  fill_constant() -> (Out=m) {shape=[3], dtype=6, value=0.0}\n"
       "  fill_constant() -> (Out=n) {shape=[3], dtype=6, value=1.0}\n"
       "  batch_norm(X=w, Scale=s, Bias=b, Mean=m, Variance=n) -> (Y=y, MeanOut=m, VarianceOut=n, "
       "SavedMean=sm, SavedVariance=sv) {epsilon=0.5}\n"
       "  batch_norm(X=v, Scale=s, Bias=b, Mean=m, Variance=n) -> (Y=z, MeanOut=m, VarianceOut=n, "
       "SavedMean=tm, SavedVariance=tv) {epsilon=0.5}\n"
       "  elementwise_mul(X=y, Y=z) -> (Out=q)\n  mean(X=q) -> (Out=loss)\n"},
      {"ATableThatIsAFactorBetweenItsLookups",
       "  var ids int64[2] stop_gradient\n  var e float64[2,3]\n  var h float64[2,3]\n"
       "  var y float64[2,2]\n  var f float64[2,3]\n  var q float64[2,5]\n  var r float64[2,5]\n",
       "  concat(X=[i1, i0]) -> (Out=ids) {axis=0}\n"
       "  lookup_table_v2(W=w, Ids=ids) -> (Out=e) {is_sparse=true}\n"
       "  tanh(X=e) -> (Out=h)\n"
       "  matmul_v2(X=h, Y=w) -> (Out=y) {trans_x=false, trans_y=true}\n"
       "  lookup_table_v2(W=w, Ids=ids) -> (Out=f) {is_sparse=true}\n"
       "  concat(X=[y, f]) -> (Out=q) {axis=1}\n"
       "  elementwise_mul(X=q, Y=q) -> (Out=r)\n"
       "  mean(X=r) -> (Out=loss)\n"},
      {"AGradientOfOnePartOfAConcat",
       "  var s float64[2,3]\n  var c float64[2,3]\n  var k float64[2,6]\n  var h float64[2,6]\n"
       "  var h@GRAD float64[2,6]\n  var k@GRAD float64[2,6]\n  var s@GRAD float64[2,3]\n"
       "  var g float64[2,3]\n",
       "  square(X=w) -> (Out=s)\n"
       "  fill_any_like(X=w) -> (Out=c) {value=1.5}\n"
       "  concat(X=[s, c]) -> (Out=k) {axis=1}\n"
       "  square(X=k) -> (Out=h)\n"
       "  fill_any_like(X=h) -> (Out=h@GRAD) {value=1.0}\n"
       "  square_grad(X=k, Out@GRAD=h@GRAD) -> (X@GRAD=k@GRAD)\n"
       "  concat_grad(X=[s, c], Out@GRAD=k@GRAD) -> (X@GRAD=[s@GRAD, @EMPTY@]) {axis=1}\n"
       "  square(X=s@GRAD) -> (Out=g)\n"
       "  mean(X=g) -> (Out=loss)\n"},
      {"ALossOfComplexNumbers",
       "  var z float64[2,3]\n  var c complex128[2,3]\n  var d complex128[2,3]\n"
       "  var m float64[2,3]\n  var q float64[2,3]\n",
       "  sin(X=w) -> (Out=z)\n"
       "  complex(X=w, Y=z) -> (Out=c)\n"
       "  elementwise_mul(X=c, Y=c) -> (Out=d)\n"
       "  abs(X=d) -> (Out=m)\n"
       "  elementwise_mul(X=m, Y=z) -> (Out=q)\n"
       "  mean(X=q) -> (Out=loss)\n"},
  };
}

// Paddle's while_grad finds the gradients of what its loop carries by their plain names.
TEST(ProgramGradientNamesTest, WhatALoopCarriesKeepsThePlainName) {
  const absl::StatusOr<Program> program = ParseProgram(TextOf(ReadBeforeItsLoop()));
  ASSERT_THAT(program, IsOk());
  const auto backward = AppendBackward(*program, {.loss = "loss"}, OpRegistry::Global());
  ASSERT_THAT(backward, IsOk());
  const Program& made = backward->program;
  const auto loop = std::find_if(made.blocks[0].ops.begin(), made.blocks[0].ops.end(),
                                 [](const Op& op) { return op.type == "while_grad"; });
  ASSERT_NE(loop, made.blocks[0].ops.end());
  EXPECT_EQ(made.NameOf(loop->FindInput("Out@GRAD")->args[0]), "x@GRAD");
  EXPECT_EQ(made.NameOf(loop->FindOutput("X@GRAD")->args[0]), "x@GRAD");
}

INSTANTIATE_TEST_SUITE_P(Branches, ProgramGradientTest, ::testing::ValuesIn(BranchCases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(OddBranches, ProgramGradientTest, ::testing::ValuesIn(OddBranchCases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Arrays, ProgramGradientTest, ::testing::ValuesIn(ArrayCases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Others, ProgramGradientTest, ::testing::ValuesIn(OtherCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace interp::testing
