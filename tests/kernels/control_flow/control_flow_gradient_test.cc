// Long because programs with blocks are long texts.
// Gradients of ops that run blocks, where the golden cases do not go: no trip, renamed gradients,
// old ops, and what the makers write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/gradient.h"
#include "core/op_def.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Case {
  std::string text;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
};

// Through a plan file.
absl::StatusOr<std::vector<Tensor>> RunTwice(const Case& test, const std::vector<Tensor>& feeds) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(test.text));
  INTERP_ASSIGN_OR_RETURN(
      const CompiledProgram compiled,
      Compile(std::move(program), test.feeds, test.fetches, {}, {}, OpRegistry::Global()));
  INTERP_ASSIGN_OR_RETURN(const std::string file, FormatPlan(compiled));
  INTERP_ASSIGN_OR_RETURN(CompiledProgram read, ParsePlan(file, OpRegistry::Global()));
  INTERP_ASSIGN_OR_RETURN(const auto core, InterpreterCore::Create(std::move(read), nullptr));
  INTERP_RETURN_IF_ERROR(core->Run(feeds).status());
  return core->Run(feeds);  // as a warm run has it
}

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<float>(shape, values);
}

Tensor Int(int64_t value) { return Tensor::Of<int64_t>({1}, std::vector<int64_t>{value}); }

// h = 2 h + w, n times. `outside` is the name that h's gradient has in block 0.
Case Loop(const std::string& outside) {
  return {absl::StrCat(
              "block 0\n"
              "  var n int64[1]\n  var h float32[2]\n  var w float32[2]\n  var x float32[2]\n"
              "  var i int64[1]\n  var go bool[1]\n  var steps step_scopes\n  var y float32[2]\n"
              "  var w@GRAD float32[2]\n  var h@GRAD float32[2]\n  var og float32[2]\n",
              outside == "h@GRAD" ? "" : absl::StrCat("  var ", outside, " float32[2]\n"),
              "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
              "  assign(X=x) -> (Out=h)\n"
              "  less_than(X=i, Y=n) -> (Out=go)\n"
              "  while(X=[i, n, h, w], Condition=go) -> (Out=[i, h, go], StepScopes=steps)"
              " {sub_block=block:1}\n"
              "  assign(X=h) -> (Out=y)\n"
              "  assign(X=og) -> (Out=",
              outside,
              ")\n"
              "  while_grad(X=[i, n, h, w], Out=[i, h, go], StepScopes=steps, Out@GRAD=",
              outside, ") -> (X@GRAD=[@EMPTY@, @EMPTY@, ", outside,
              ", w@GRAD]) {sub_block=block:2, original_output_grad=[\"h@GRAD\"]}\n"
              "block 1 parent=0\n"
              "  var twice float32[2]\n  var next float32[2]\n"
              "  scale(X=h) -> (Out=twice) {scale=2.0}\n"
              "  elementwise_add(X=twice, Y=w) -> (Out=next)\n"
              "  assign(X=next) -> (Out=h)\n"
              "  increment(X=i) -> (Out=i) {step=1.0}\n"
              "  less_than(X=i, Y=n) -> (Out=go)\n"
              "block 2 parent=0 forward=1\n"
              "  var next@GRAD float32[2]\n  var w@GRAD float32[2]\n"
              "  assign(X=h@GRAD) -> (Out=next@GRAD)\n"
              "  assign(X=next@GRAD) -> (Out=w@GRAD)\n"
              "  scale(X=next@GRAD) -> (Out=h@GRAD) {scale=2.0}\n"),
          {"n", "x", "w", "og"},
          {"y", outside, "w@GRAD"}};
}

TEST(WhileGradTest, CarriesAndSumsOverTheTrips) {
  for (const std::string outside : {"h@GRAD", "h@GRAD@RENAME@block0@0"}) {
    const auto out = RunTwice(
        Loop(outside), {Int(3), Floats({2}, {1, 2}), Floats({2}, {3, 4}), Floats({2}, {1, 10})});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(8, 80));
    EXPECT_THAT(Values<float>((*out)[2]), ElementsAre(7, 70));
  }
}

// The start of a recurrence whose state needs no gradient, as one that is fed.
TEST(WhileGradTest, CarriesWhatNobodyWantsOutside) {
  Case test = Loop("h@GRAD");
  const std::string wanted = "X@GRAD=[@EMPTY@, @EMPTY@, h@GRAD, w@GRAD]";
  test.text.replace(test.text.find(wanted), wanted.size(),
                    "X@GRAD=[@EMPTY@, @EMPTY@, @EMPTY@, w@GRAD]");
  test.fetches = {"y", "w@GRAD"};
  const auto out =
      RunTwice(test, {Int(3), Floats({2}, {1, 2}), Floats({2}, {3, 4}), Floats({2}, {1, 10})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(7, 70));
}

TEST(WhileGradTest, OfNoTripIsWhatComesInAndZero) {
  const auto out = RunTwice(
      Loop("h@GRAD"), {Int(0), Floats({2}, {1, 2}), Floats({2}, {3, 4}), Floats({2}, {1, 10})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(1, 10));
  EXPECT_THAT(Values<float>((*out)[2]), ElementsAre(0, 0));
}

TEST(WhileGradTest, RefusesNamesThatDoNotFitTheGradients) {
  Case test = Loop("h@GRAD");
  const std::string names = "original_output_grad=[\"h@GRAD\"]";
  test.text.replace(test.text.find(names), names.size(),
                    "original_output_grad=[\"h@GRAD\", \"i@GRAD\"]");
  EXPECT_THAT(RunTwice(test, {}).status().message(),
              HasSubstr("'original_output_grad' has 2 names"));
}

// out[i] = 3 x for i < n, the elements' gradients carried by the array out@GRAD.
TEST(WhileGradTest, CarriesArrays) {
  const Case test = {
      "block 0\n"
      "  var n int64[1]\n  var x float32[2]\n  var i int64[1]\n  var go bool[1]\n"
      "  var out lod_tensor_array\n  var out@GRAD lod_tensor_array\n"
      "  var steps step_scopes\n  var x@GRAD float32[2]\n  var zero int64[1]\n  var one int64[1]\n"
      "  var a float32[2]\n  var b float32[2]\n"
      "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
      "  fill_constant() -> (Out=zero) {shape=[1], dtype=3, value=0.0}\n"
      "  fill_constant() -> (Out=one) {shape=[1], dtype=3, value=1.0}\n"
      "  less_than(X=i, Y=n) -> (Out=go)\n"
      "  while(X=[i, n, x, out], Condition=go) -> (Out=[i, out, go], StepScopes=steps)"
      " {sub_block=block:1}\n"
      "  write_to_array(X=a, I=zero) -> (Out=out@GRAD)\n"
      "  write_to_array(X=b, I=one) -> (Out=out@GRAD)\n"
      "  while_grad(X=[i, n, x, out], Out=[i, out, go], StepScopes=steps, Out@GRAD=out@GRAD)"
      " -> (X@GRAD=[@EMPTY@, @EMPTY@, x@GRAD, out@GRAD])"
      " {sub_block=block:2, original_output_grad=[\"out@GRAD\"]}\n"
      "block 1 parent=0\n"
      "  var element float32[2]\n  var at int64[1]\n  var next int64[1]\n"
      "  assign(X=i) -> (Out=at)\n"
      "  scale(X=x) -> (Out=element) {scale=3.0}\n"
      "  write_to_array(X=element, I=at) -> (Out=out)\n"
      "  scale(X=i) -> (Out=next) {scale=1.0, bias=1.0}\n"
      "  assign(X=next) -> (Out=i)\n"
      "  less_than(X=i, Y=n) -> (Out=go)\n"
      "block 2 parent=0 forward=1\n"
      "  var element@GRAD float32[2]\n  var x@GRAD float32[2]\n"
      "  read_from_array(X=out@GRAD, I=at, X_W=element) -> (Out=element@GRAD)\n"
      "  scale(X=element@GRAD) -> (Out=x@GRAD) {scale=3.0}\n",
      {"n", "x", "a", "b"},
      {"x@GRAD"}};
  const auto out =
      RunTwice(test, {Int(3), Floats({2}, {1, 2}), Floats({2}, {1, 10}), Floats({2}, {2, 20})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(9, 90));
}

// x = x * x.detach(), three times.
TEST(WhileGradTest, ADetachedValueIsWhatEachTripFound) {
  const Case test = {
      "block 0\n"
      "  var n int64[1]\n  var x float32[2]\n  var i int64[1]\n  var go bool[1]\n"
      "  var y float32[2]\n  var d float32[2] stop_gradient\n  var steps step_scopes\n"
      "  var y@GRAD float32[2]\n  var out float32[2]\n"
      "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
      "  assign(X=x) -> (Out=y)\n"
      "  less_than(X=i, Y=n) -> (Out=go)\n"
      "  share_data(X=y) -> (Out=d)\n"
      "  while(X=[i, n, y, d], Condition=go) -> (Out=[i, y, go], StepScopes=steps)"
      " {sub_block=block:1}\n"
      "  assign(X=d) -> (Out=out)\n"
      "  fill_constant() -> (Out=y@GRAD) {shape=[2], dtype=5, value=1.0}\n"
      "  while_grad(X=[i, n, y, d], Out=[i, y, go], StepScopes=steps, Out@GRAD=y@GRAD)"
      " -> (X@GRAD=[@EMPTY@, @EMPTY@, y@GRAD, @EMPTY@])"
      " {sub_block=block:2, original_output_grad=[\"y@GRAD\"]}\n"
      "block 1 parent=0\n"
      "  var next float32[2]\n"
      "  elementwise_mul(X=y, Y=d) -> (Out=next)\n"
      "  assign(X=next) -> (Out=y)\n"
      "  increment(X=i) -> (Out=i) {step=1.0}\n"
      "  less_than(X=i, Y=n) -> (Out=go)\n"
      "block 2 parent=0 forward=1\n"
      "  var next@GRAD float32[2]\n"
      "  assign(X=y@GRAD) -> (Out=next@GRAD)\n"
      "  elementwise_mul_grad(X=y, Y=d, Out@GRAD=next@GRAD) -> (X@GRAD=y@GRAD)\n",
      {"n", "x"},
      {"y", "out", "y@GRAD"}};
  const auto out = RunTwice(test, {Int(3), Floats({2}, {1, 2})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 256));
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(1, 256));
  EXPECT_THAT(Values<float>((*out)[2]), ElementsAre(1, 128));
}

// Each trip makes a longer y of w[1], of which the last one has a gradient.
TEST(WhileGradTest, ZerosAreOfTheShapeOfTheirTrip) {
  const Case test = {
      "block 0\n"
      "  var n int64[1]\n  var w float32[1]\n  var i int64[1]\n  var go bool[1]\n"
      "  var y float32[-1]\n  var steps step_scopes\n  var og float32[-1]\n  var y@GRAD "
      "float32[-1]\n"
      "  var w@GRAD float32[1]\n"
      "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
      "  less_than(X=i, Y=n) -> (Out=go)\n"
      "  while(X=[i, n, w], Condition=go) -> (Out=[i, y, go], StepScopes=steps)"
      " {sub_block=block:1}\n"
      "  while_grad(X=[i, n, w], Out=[i, y, go], StepScopes=steps, Out@GRAD=og)"
      " -> (X@GRAD=[@EMPTY@, @EMPTY@, w@GRAD])"
      " {sub_block=block:2, original_output_grad=[\"y@GRAD\"]}\n"
      "block 1 parent=0\n"
      "  var next int64[1]\n  var twos float32[-1]\n"
      "  scale(X=i) -> (Out=next) {scale=1.0, bias=1.0}\n"
      "  fill_constant(ShapeTensor=next) -> (Out=twos) {shape=[-1], dtype=5, value=2.0}\n"
      "  elementwise_mul(X=twos, Y=w) -> (Out=y)\n"
      "  assign(X=next) -> (Out=i)\n"
      "  less_than(X=i, Y=n) -> (Out=go)\n"
      "block 2 parent=0 forward=1\n"
      "  var w@GRAD float32[1]\n"
      "  elementwise_mul_grad(X=twos, Y=w, Out@GRAD=y@GRAD) -> (Y@GRAD=w@GRAD)\n",
      {"n", "w", "og"},
      {"y", "w@GRAD"}};
  const auto out = RunTwice(test, {Int(3), Floats({1}, {5}), Floats({3}, {1, 2, 3})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(10, 10, 10));
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(12));
}

// y is made anew in each trip, i + 1 ones times w. Paddle's gradient block only reads y@GRAD then.
Case MadeAnew(const std::string& dims_of_trip) {
  return {absl::StrCat(
              "block 0\n"
              "  var n int64[1]\n  var w float32[1]\n  var i int64[1]\n  var go bool[1]\n"
              "  var y float32[-1]\n  var steps step_scopes\n  var y@GRAD float32[-1]\n"
              "  var og float32[-1]\n  var w@GRAD float32[1]\n"
              "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
              "  fill_constant() -> (Out=y) {shape=[1], dtype=5, value=7.0}\n"
              "  less_than(X=i, Y=n) -> (Out=go)\n"
              "  while(X=[i, n, w, y], Condition=go) -> (Out=[i, y, go], StepScopes=steps)"
              " {sub_block=block:1}\n"
              "  assign(X=og) -> (Out=y@GRAD)\n"
              "  while_grad(X=[i, n, w, y], Out=[i, y, go], StepScopes=steps, Out@GRAD=y@GRAD)"
              " -> (X@GRAD=[@EMPTY@, @EMPTY@, w@GRAD, @EMPTY@])"
              " {sub_block=block:2, original_output_grad=[\"y@GRAD\"]}\n"
              "block 1 parent=0\n"
              "  var next int64[1]\n  var ones float32[-1]\n  var scaled float32[-1]\n"
              "  scale(X=i) -> (Out=next) {scale=1.0, bias=1.0}\n"
              "  fill_constant(",
              dims_of_trip,
              ") -> (Out=ones) {shape=[3], dtype=5, value=1.0}\n"
              "  elementwise_mul(X=ones, Y=w) -> (Out=scaled)\n"
              "  assign(X=scaled) -> (Out=y)\n"
              "  assign(X=next) -> (Out=i)\n"
              "  less_than(X=i, Y=n) -> (Out=go)\n"
              "block 2 parent=0 forward=1\n"
              "  var scaled@GRAD float32[-1]\n  var w@GRAD float32[1]\n"
              "  assign(X=y@GRAD) -> (Out=scaled@GRAD)\n"
              "  elementwise_mul_grad(X=ones, Y=w, Out@GRAD=scaled@GRAD) -> (Y@GRAD=w@GRAD)\n"),
          {"n", "w", "og"},
          {"y", "w@GRAD"}};
}

TEST(WhileGradTest, AGradientThatTheBlockLeavesGoesToTripsOfItsShape) {
  const auto growing =
      RunTwice(MadeAnew("ShapeTensor=next"), {Int(3), Floats({1}, {5}), Floats({3}, {1, 2, 3})});
  ASSERT_THAT(growing, IsOk());
  EXPECT_THAT(Values<float>((*growing)[0]), ElementsAre(5, 5, 5));
  EXPECT_THAT(Values<float>((*growing)[1]), ElementsAre(6));
  // Paddle gives it to each trip.
  const auto fixed = RunTwice(MadeAnew(""), {Int(3), Floats({1}, {5}), Floats({3}, {1, 2, 3})});
  ASSERT_THAT(fixed, IsOk());
  EXPECT_THAT(Values<float>((*fixed)[1]), ElementsAre(18));
}

// Nothing passes the loop: y had another shape before it.
TEST(WhileGradTest, AGradientThatTheBlockLeavesIsZerosBeforeTheLoop) {
  Case test = MadeAnew("ShapeTensor=next");
  const auto replace = [&test](const std::string& from, const std::string& to) {
    test.text.replace(test.text.find(from), from.size(), to);
  };
  replace("Out=y) {shape=[1]", "Out=y) {shape=[2]");
  replace("w@GRAD, @EMPTY@])", "w@GRAD, y_before@GRAD])");
  replace("  var og ", "  var y_before@GRAD float32[-1]\n  var og ");
  test.fetches = {"w@GRAD", "y_before@GRAD"};
  const auto three = RunTwice(test, {Int(3), Floats({1}, {5}), Floats({3}, {1, 2, 3})});
  ASSERT_THAT(three, IsOk());
  EXPECT_THAT(Values<float>((*three)[0]), ElementsAre(6));
  EXPECT_THAT(Values<float>((*three)[1]), ElementsAre(0, 0));
  const auto none = RunTwice(test, {Int(0), Floats({1}, {5}), Floats({2}, {1, 2})});
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(Values<float>((*none)[1]), ElementsAre(1, 2));
}

// The loop does not say that it writes y.
TEST(WhileGradTest, ZerosOfWhatIsNoOutAreOfTheShapeOfTheirTrip) {
  Case test = MadeAnew("ShapeTensor=next");
  const std::string listed = "Out=[i, y, go]";
  for (size_t at = 0; (at = test.text.find(listed)) != std::string::npos;) {
    test.text.replace(at, listed.size(), "Out=[i, go]");
  }
  const auto growing = RunTwice(test, {Int(3), Floats({1}, {5}), Floats({3}, {1, 2, 3})});
  ASSERT_THAT(growing, IsOk());
  EXPECT_THAT(Values<float>((*growing)[1]), ElementsAre(6));
}

// Paddle wants gradients of integers that a cast in a loop reads.
TEST(WhileGradTest, SumsOfIntegersAreMadeToo) {
  Case test = Loop("h@GRAD");
  const auto replace = [&test](const std::string& from, const std::string& to) {
    test.text.replace(test.text.find(from), from.size(), to);
  };
  replace("  var w@GRAD float32[2]\n", "  var w@GRAD float32[2]\n  var n@GRAD int64[1]\n");
  replace("X@GRAD=[@EMPTY@, @EMPTY@, h@GRAD", "X@GRAD=[@EMPTY@, n@GRAD, h@GRAD");
  test.text +=
      "  var n@GRAD int64[1]\n"
      "  fill_constant() -> (Out=n@GRAD) {shape=[1], dtype=3, value=2.0}\n";
  test.fetches.push_back("n@GRAD");
  const auto out =
      RunTwice(test, {Int(3), Floats({2}, {1, 2}), Floats({2}, {3, 4}), Floats({2}, {1, 10})});
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ((*out)[3].data<int64_t>()[0], 6);
}

// Paddle declares Indices of kthvalue as X.
TEST(ConditionalBlockGradTest, TakesWholeNumbersThatAreDeclaredAsFloats) {
  const Case test = {
      "block 0\n"
      "  var yes bool[1]\n  var x float32[2,3]\n  var y float32[2]\n  var g float32[2]\n"
      "  var scope step_scopes\n  var x@GRAD float32[2,3]\n"
      "  conditional_block(Cond=yes, Input=x) -> (Out=y, Scope=scope)"
      " {sub_block=block:1, is_scalar_condition=true}\n"
      "  conditional_block_grad(Cond=yes, Input=x, Out=y, Out@GRAD=g, Scope=scope)"
      " -> (Input@GRAD=x@GRAD) {sub_block=block:2, is_scalar_condition=true}\n"
      "block 1 parent=0\n"
      "  var at float32[2]\n"
      "  kthvalue(X=x) -> (Out=y, Indices=at) {k=2, axis=-1}\n"
      "block 2 parent=0 forward=1\n"
      "  kthvalue_grad(X=x, Indices=at, Out@GRAD=g) -> (X@GRAD=x@GRAD) {k=2, axis=-1}\n",
      {"yes", "x", "g"},
      {"x@GRAD"}};
  const auto out = RunTwice(test, {Tensor::Of<bool>({1}, {true}),
                                   Floats({2, 3}, {3, 1, 2, 7, 8, 9}), Floats({2}, {1, 10})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(0, 0, 1, 0, 10, 0));
}

TEST(ConditionalBlockGradTest, OfABlockThatDidNotRunIsZero) {
  const Case test = {
      "block 0\n"
      "  var x float32[2]\n  var yes bool[1]\n  var y float32[2]\n  var scope step_scopes\n"
      "  var y@GRAD float32[2]\n  var x@GRAD float32[2]\n"
      "  conditional_block(Cond=yes, Input=x) -> (Out=y, Scope=scope)"
      " {sub_block=block:1, is_scalar_condition=true}\n"
      "  conditional_block_grad(Cond=yes, Input=x, Out=y, Out@GRAD=y@GRAD, Scope=scope)"
      " -> (Input@GRAD=x@GRAD) {sub_block=block:2, is_scalar_condition=true}\n"
      "block 1 parent=0\n"
      "  scale(X=x) -> (Out=y) {scale=2.0}\n"
      "block 2 parent=0 forward=1\n"
      "  var x@GRAD float32[2]\n"
      "  scale(X=y@GRAD) -> (Out=x@GRAD) {scale=2.0}\n",
      {"x", "yes", "y@GRAD"},
      {"x@GRAD"}};
  for (const bool taken : {true, false}) {
    const auto out =
        RunTwice(test, {Floats({2}, {1, 2}), Tensor::Of<bool>({1}, {taken}), Floats({2}, {3, 4})});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<float>((*out)[0]), taken ? ElementsAre(6, 8) : ElementsAre(0, 0));
  }
}

// A table's gradient is no rows then.
TEST(ConditionalBlockGradTest, OfATableInABranchThatDidNotRunIsNoRows) {
  const Case test = {
      "block 0\n"
      "  var w float32[3,2]\n  var ids int64[2,1]\n  var yes bool[1]\n  var y float32[2,2]\n"
      "  var scope step_scopes\n  var y@GRAD float32[2,2]\n  var w@GRAD selected_rows "
      "float32[3,2]\n"
      "  var rate float32[1]\n  var new float32[3,2]\n"
      "  conditional_block(Cond=yes, Input=[w, ids]) -> (Out=y, Scope=scope)"
      " {sub_block=block:1, is_scalar_condition=true}\n"
      "  conditional_block_grad(Cond=yes, Input=[w, ids], Out=y, Out@GRAD=y@GRAD, Scope=scope)"
      " -> (Input@GRAD=[w@GRAD, @EMPTY@]) {sub_block=block:2, is_scalar_condition=true}\n"
      "  sgd(Param=w, Grad=w@GRAD, LearningRate=rate) -> (ParamOut=w)\n"
      "block 1 parent=0\n"
      "  lookup_table(W=w, Ids=ids) -> (Out=y) {is_sparse=true}\n"
      "block 2 parent=0 forward=1\n"
      "  var w@GRAD selected_rows float32[3,2]\n"
      "  lookup_table_grad(W=w, Ids=ids, Out@GRAD=y@GRAD) -> (W@GRAD=w@GRAD) {is_sparse=true}\n",
      {"w", "ids", "yes", "y@GRAD", "rate"},
      {"w"}};
  for (const bool taken : {true, false}) {
    const auto out = RunTwice(
        test, {Floats({3, 2}, {1, 1, 1, 1, 1, 1}), Tensor::Of<int64_t>({2, 1}, {2, 0}),
               Tensor::Of<bool>({1}, {taken}), Floats({2, 2}, {1, 2, 3, 4}), Floats({1}, {1})});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<float>((*out)[0]),
                taken ? ElementsAre(-2, -3, 1, 1, 0, -1) : ElementsAre(1, 1, 1, 1, 1, 1));
  }
}

// The gradient of an array that the branch reads has as many elements, although the array itself is
// not read any more.
TEST(ConditionalBlockGradTest, OfAnArrayIsAsLong) {
  const Case test = {
      "block 0\n"
      "  var x float32[2]\n  var yes bool[1]\n  var i int64[1]\n  var a lod_tensor_array\n"
      "  var y float32[2]\n  var scope step_scopes\n  var y@GRAD float32[2]\n"
      "  var a@GRAD lod_tensor_array\n  var n int64[1]\n"
      "  write_to_array(X=x, I=i) -> (Out=a)\n"
      "  scale(X=x) -> (Out=y) {scale=2.0}\n"
      "  conditional_block(Cond=yes, Input=a) -> (Out=y, Scope=scope)"
      " {sub_block=block:1, is_scalar_condition=true}\n"
      "  conditional_block_grad(Cond=yes, Input=a, Out=y, Out@GRAD=y@GRAD, Scope=scope)"
      " -> (Input@GRAD=a@GRAD) {sub_block=block:2, is_scalar_condition=true}\n"
      "  lod_array_length(X=a@GRAD) -> (Out=n)\n"
      "block 1 parent=0\n"
      "  read_from_array(X=a, I=i) -> (Out=y)\n"
      "block 2 parent=0 forward=1\n"
      "  var a@GRAD lod_tensor_array\n"
      "  write_to_array(X=y@GRAD, I=i) -> (Out=a@GRAD)\n",
      {"x", "yes", "i", "y@GRAD"},
      {"n"}};
  for (const bool taken : {true, false}) {
    const auto out = RunTwice(
        test, {Floats({2}, {1, 2}), Tensor::Of<bool>({1}, {taken}), Int(0), Floats({2}, {3, 4})});
    ASSERT_THAT(out, IsOk());
    EXPECT_EQ((*out)[0].data<int64_t>()[0], 1);
  }
}

// The branch writes s over, which its gradient shows by making none of s. That of n is an
// integer's, which the program does not name otherwise, and nothing outside makes that of u.
TEST(ConditionalBlockGradTest, WhatABranchOverwritesHasNoGradientBehindIt) {
  const Case test = {
      "block 0\n"
      "  var x float32[2]\n  var s float32[2]\n  var u float32[2]\n  var n int64[1]\n"
      "  var yes bool[1]\n  var scope step_scopes\n"
      "  var s@GRAD float32[2]\n  var x@GRAD float32[2]\n  var s_before@GRAD float32[2]\n"
      "  var n@GRAD@RENAME int64[1]\n"
      "  conditional_block(Cond=yes, Input=[x, s, n]) -> (Out=[s, n, u], Scope=scope)"
      " {sub_block=block:1, is_scalar_condition=true}\n"
      "  fill_any_like(X=n) -> (Out=n@GRAD@RENAME) {value=0.0, dtype=-1}\n"
      "  conditional_block_grad(Cond=yes, Input=[x, s, n], Out=[s, n, u],"
      " Out@GRAD=[s@GRAD, n@GRAD@RENAME, u@GRAD], Scope=scope)"
      " -> (Input@GRAD=[x@GRAD, s_before@GRAD, @EMPTY@])"
      " {sub_block=block:2, is_scalar_condition=true}\n"
      "block 1 parent=0\n"
      "  scale(X=x) -> (Out=s) {scale=2.0}\n"
      "  scale(X=x) -> (Out=u) {scale=3.0}\n"
      "block 2 parent=0 forward=1\n"
      "  var x@GRAD float32[2]\n"
      "  scale(X=s@GRAD) -> (Out=x@GRAD) {scale=2.0}\n",
      {"x", "s", "n", "yes", "s@GRAD"},
      {"x@GRAD", "s_before@GRAD"}};
  for (const bool taken : {true, false}) {
    const auto out = RunTwice(test, {Floats({2}, {1, 2}), Floats({2}, {5, 6}), Int(7),
                                     Tensor::Of<bool>({1}, {taken}), Floats({2}, {3, 4})});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<float>((*out)[0]), taken ? ElementsAre(6, 8) : ElementsAre(0, 0));
    EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(0, 0));
  }
}

// A branch in a loop writes w, and nothing reads w behind it, so no op makes its gradient.
TEST(WhileGradTest, AGradientThatNothingMakesIsOfTheTypeItsBlockDeclares) {
  const Case test = {
      "block 0\n"
      "  var x float32[2]\n  var go bool[1]\n  var yes bool[1]\n  var steps step_scopes\n"
      "  var x@GRAD float32[2]\n  var out float32[2]\n"
      "  while(X=[x, yes], Condition=go) -> (Out=[out, go], StepScopes=steps)"
      " {sub_block=block:1}\n"
      "  while_grad(X=[x, yes], Out=[out, go], StepScopes=steps, Out@GRAD=[w@GRAD])"
      " -> (X@GRAD=[x@GRAD, @EMPTY@]) {sub_block=block:3, original_output_grad=[\"w@GRAD\"]}\n"
      "block 1 parent=0\n"
      "  var w float32[2]\n  var scope step_scopes\n"
      "  scale(X=x) -> (Out=w) {scale=2.0}\n"
      "  assign(X=w) -> (Out=out)\n"
      "  conditional_block(Cond=yes, Input=w) -> (Out=w, Scope=scope)"
      " {sub_block=block:2, is_scalar_condition=true}\n"
      "  logical_not(X=go) -> (Out=go)\n"
      "block 2 parent=1\n"
      "  scale(X=x) -> (Out=w) {scale=5.0}\n"
      "block 3 parent=0 forward=1\n"
      "  var w@GRAD float32[2]\n  var x@GRAD float32[2]\n"
      "  conditional_block_grad(Cond=yes, Input=w, Out=w, Out@GRAD=w@GRAD, Scope=scope)"
      " -> (Input@GRAD=w@GRAD) {sub_block=block:4, is_scalar_condition=true}\n"
      "  scale(X=w@GRAD) -> (Out=x@GRAD) {scale=2.0}\n"
      "block 4 parent=3 forward=2\n",
      {"x", "go", "yes"},
      {"x@GRAD"}};
  for (const bool taken : {true, false}) {
    const auto out = RunTwice(
        test, {Floats({2}, {1, 2}), Tensor::Of<bool>({1}, {true}), Tensor::Of<bool>({1}, {taken})});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(0, 0));
  }
}

TEST(RnnMemoryHelperGradTest, IsZeroWithoutAGradient) {
  const std::string head =
      "block 0\n  var x float32[2]\n  var og float32[2]\n  var missing float32[2]\n"
      "  var x@GRAD float32[2]\n";
  const std::string tail = ") -> (X@GRAD=x@GRAD)\n";
  const Tensor x = Floats({2}, {1, 2});
  const auto with =
      RunTwice({head + "  rnn_memory_helper_grad(X=x, Out@GRAD=og" + tail, {"x", "og"}, {"x@GRAD"}},
               {x, Floats({2}, {3, 4})});
  ASSERT_THAT(with, IsOk());
  EXPECT_THAT(Values<float>((*with)[0]), ElementsAre(3, 4));
  const auto without =
      RunTwice({head + "  rnn_memory_helper_grad(X=x" + tail, {"x"}, {"x@GRAD"}}, {x});
  ASSERT_THAT(without, IsOk());
  EXPECT_THAT(Values<float>((*without)[0]), ElementsAre(0, 0));
}

// The ops that the gradient of op `index` of block 0 is, one a line; gradients of `unwanted` are
// not asked for.
std::string GradientOf(const std::string& text, size_t index, int32_t gradient_block,
                       const std::string& unwanted = "") {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  const Op op = program->blocks[0].ops[index];
  GradientMaker maker({.program = &*program,
                       .block = 0,
                       .op = &op,
                       .gradient_block = gradient_block,
                       .wants = [&](VarId id) { return program->NameOf(id) != unwanted; }});
  const GradientDef& def = OpRegistry::Global().Find(op.type)->gradient;
  if (def.make != nullptr) {
    EXPECT_THAT(def.make(maker), IsOk());
  } else {
    maker.AddByTable(def);
  }
  program->blocks[0].ops = maker.Take();
  std::string made;
  for (size_t i = 0; i < program->blocks[0].ops.size(); ++i) {
    absl::StrAppend(&made, ToText(*program, program->blocks[0].ops[i]), "\n");
  }
  return made;
}

TEST(WhileGradientTest, AsksForWhatItsBlockReadsAndNobodyMakes) {
  std::string text = Loop("h@GRAD").text;
  // As append_backward sees it: the gradients outside are not declared yet.
  for (const std::string name : {"  var w@GRAD float32[2]\n", "  var h@GRAD float32[2]\n"}) {
    text.erase(text.find(name), name.size());
  }
  EXPECT_THAT(GradientOf(text, 3, 2),
              HasSubstr("while_grad(X=[i, n, h, w], Out=[i, h, go], StepScopes=steps, "
                        "Out@GRAD=h@GRAD) -> (X@GRAD=[@EMPTY@, @EMPTY@, h@GRAD, w@GRAD])"));
  EXPECT_THAT(GradientOf(text, 3, 2), HasSubstr("original_output_grad=[\"h@GRAD\"]"));
  EXPECT_THAT(GradientOf(text, 3, 2, "w"),
              HasSubstr("(X@GRAD=[@EMPTY@, @EMPTY@, h@GRAD, @EMPTY@])"));
}

TEST(ArrayGradientTest, WritesBecomeReadsAndTheOtherWayRound) {
  const std::string text =
      "block 0\n  var x float32[2]\n  var i int64[1]\n  var a lod_tensor_array\n"
      "  var y float32[2]\n"
      "  write_to_array(X=x, I=i) -> (Out=a)\n"
      "  read_from_array(X=a, I=i) -> (Out=y)\n";
  EXPECT_THAT(GradientOf(text, 0, -1),
              HasSubstr("read_from_array(I=i, X=a@GRAD, X_W=x) -> (Out=x@GRAD)"));
  EXPECT_THAT(GradientOf(text, 1, -1), HasSubstr("write_to_array(I=i, X=y@GRAD) -> (Out=a@GRAD)"));
  EXPECT_EQ(GradientOf(text, 0, -1, "x"), "");
}

TEST(SelectGradientTest, EachIsTheOthers) {
  const std::string text =
      "block 0\n  var x float32[2]\n  var y float32[2]\n  var m int32[1]\n  var z float32[2]\n"
      "  select_input(X=[x, y], Mask=m) -> (Out=z)\n"
      "  select_output(X=z, Mask=m) -> (Out=[x, y])\n";
  EXPECT_THAT(GradientOf(text, 0, -1, "y"),
              HasSubstr("select_output(Mask=m, X=z@GRAD) -> (Out=[x@GRAD, @EMPTY@])"));
  EXPECT_THAT(GradientOf(text, 1, -1),
              HasSubstr("select_input(Mask=m, X=[x@GRAD, y@GRAD]) -> (Out=z@GRAD)"));
}

}  // namespace
}  // namespace interp::testing
