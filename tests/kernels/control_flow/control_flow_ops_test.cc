// Ops that run blocks, on whole programs: what the golden cases cannot show, such as errors, trips
// that depend on feeds, and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"

namespace interp::testing::control_flow_ops_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

struct Case {
  std::string text;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
};

// Runs feed other shapes than the programs declare.
std::unique_ptr<InterpreterCore> MakeCore(const Case& test, const CoreOptions& options = {
                                                                .check_feed_shapes = false}) {
  absl::StatusOr<Program> program = ParseProgram(test.text);
  EXPECT_THAT(program, IsOk());
  if (!program.ok()) return nullptr;
  auto core =
      InterpreterCore::Create(*std::move(program), test.feeds, test.fetches, nullptr, options);
  EXPECT_THAT(core, IsOk());
  return core.ok() ? *std::move(core) : nullptr;
}

Tensor Ints(const std::vector<int64_t>& values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<float>(shape, values);
}

// Adds x to `sum` as often as n says.
const Case kLoop = {
    "block 0\n"
    "  var n int64[1]\n  var x float32[2]\n  var i int64[1]\n  var go bool[1]\n"
    "  var sum float32[2]\n"
    "  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
    "  scale(X=x) -> (Out=sum) {scale=0.0}\n"
    "  less_than(X=i, Y=n) -> (Out=go)\n"
    "  while(X=[i, n, x, sum], Condition=go) -> (Out=[i, sum, go]) {sub_block=block:1}\n"
    "block 1 parent=0\n"
    "  var next float32[2]\n"
    "  elementwise_add(X=sum, Y=x) -> (Out=next)\n"
    "  assign(X=next) -> (Out=sum)\n"
    "  increment(X=i) -> (Out=i) {step=1.0}\n"
    "  less_than(X=i, Y=n) -> (Out=go)\n",
    {"n", "x"},
    {"sum", "i"}};

TEST(WhileTest, MakesAsManyTripsAsItsConditionSays) {
  const auto core = MakeCore(kLoop);
  ASSERT_NE(core, nullptr);
  for (const int64_t trips : {3, 0, 1000, 1}) {
    const auto out = core->Run({Ints({trips}), Floats({2}, {1, 0.5f})});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<float>((*out)[0]),
                ElementsAre(static_cast<float>(trips), static_cast<float>(trips) * 0.5f));
    EXPECT_THAT(Values<int64_t>((*out)[1]), ElementsAre(trips));
  }
}

TEST(WhileTest, TakesNoMemoryPerTrip) {
  const auto core = MakeCore(kLoop);
  ASSERT_NE(core, nullptr);
  ASSERT_THAT(core->Run({Ints({10}), Floats({2}, {1, 1})}), IsOk());
  const size_t peak = core->memory().peak_bytes;
  ASSERT_THAT(core->Run({Ints({100'000}), Floats({2}, {1, 1})}), IsOk());
  EXPECT_EQ(core->memory().peak_bytes, peak);
}

TEST(WhileTest, EndsWhenTheRunIsCancelled) {
  const auto core = MakeCore(kLoop);
  ASSERT_NE(core, nullptr);
  const auto out = core->Run({Ints({int64_t{1} << 60}), Floats({2}, {1, 1})},
                             {.timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kDeadlineExceeded) << out.status();
  EXPECT_THAT(core->Run({Ints({2}), Floats({2}, {1, 1})}), IsOk());
}

TEST(WhileTest, RefusesAConditionOfSeveralElements) {
  const auto core = MakeCore(kLoop);
  ASSERT_NE(core, nullptr);
  const auto out = core->Run({Ints({3, 4}), Floats({2}, {1, 1})});
  EXPECT_THAT(out.status().message(), HasSubstr("while"));
  EXPECT_THAT(out.status().message(), HasSubstr("'Condition' is bool[2]"));
}

// After the first trip the sum has another shape than x.
TEST(WhileTest, TellsWhichOpOfWhichBlockFails) {
  Case test = kLoop;
  const std::string step = "assign(X=next) -> (Out=sum)";
  test.text.replace(test.text.find(step), step.size(),
                    "concat(X=[next, next]) -> (Out=sum) {axis=0}");
  const auto core = MakeCore(test);
  ASSERT_NE(core, nullptr);
  const auto out = core->Run({Ints({3}), Floats({3}, {1, 1, 1})});
  EXPECT_THAT(out.status().message(), HasSubstr("while"));
  EXPECT_THAT(out.status().message(), HasSubstr("block 1: op #0 elementwise_add"));
  EXPECT_THAT(core->Run({Ints({1}), Floats({3}, {1, 1, 1})}), IsOk());
}

TEST(RnnMemoryHelperTest, PassesItsInputOn) {
  const auto core =
      MakeCore({"block 0\n  var x float32[2]\n  var y float32[2]\n"
                "  rnn_memory_helper(X=x) -> (Out=y)\n",
                {"x"},
                {"y"}});
  ASSERT_NE(core, nullptr);
  const auto out = core->Run({Floats({2}, {1, 2})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 2));
}

// y = x > 0 ? 2 x : -x, elementwise decided by the sum.
const Case kBranch = {
    "block 0\n"
    "  var x float32[2]\n  var total float32[1]\n  var zero float32[1]\n  var yes bool[1]\n"
    "  var no bool[1]\n  var mask int32[1]\n  var a float32[2]\n  var b float32[2]\n"
    "  var y float32[2]\n  var s0 step_scopes\n  var s1 step_scopes\n"
    "  reduce_sum(X=x) -> (Out=total) {reduce_all=true, keep_dim=true}\n"
    "  fill_constant() -> (Out=zero) {shape=[1], dtype=5, value=0.0}\n"
    "  greater_than(X=total, Y=zero) -> (Out=yes)\n"
    "  conditional_block(Cond=yes, Input=x) -> (Out=a, Scope=s0)"
    " {sub_block=block:1, is_scalar_condition=true}\n"
    "  logical_not(X=yes) -> (Out=no)\n"
    "  conditional_block(Cond=no, Input=x) -> (Out=b, Scope=s1)"
    " {sub_block=block:2, is_scalar_condition=true}\n"
    "  cast(X=yes) -> (Out=mask) {in_dtype=0, out_dtype=2}\n"
    "  select_input(X=[b, a], Mask=mask) -> (Out=y)\n"
    "block 1 parent=0\n"
    "  var t float32[2]\n"
    "  scale(X=x) -> (Out=t) {scale=2.0}\n"
    "  assign(X=t) -> (Out=a)\n"
    "block 2 parent=0\n"
    "  var t float32[2]\n"
    "  scale(X=x) -> (Out=t) {scale=-1.0}\n"
    "  assign(X=t) -> (Out=b)\n",
    {"x"},
    {"y"}};

TEST(ConditionalBlockTest, RunsTheBranchThatItsConditionChooses) {
  for (const SchedulerKind kind :
       {SchedulerKind::kTrace, SchedulerKind::kAsync, SchedulerKind::kEngine}) {
    const auto core =
        MakeCore(kBranch, {.scheduler = kind, .num_workers = 2, .check_feed_shapes = false});
    ASSERT_NE(core, nullptr);
    for (int i = 0; i < 3; ++i) {
      const auto up = core->Run({Floats({2}, {1, 2})});
      ASSERT_THAT(up, IsOk());
      EXPECT_THAT(Values<float>((*up)[0]), ElementsAre(2, 4));
      const auto down = core->Run({Floats({3}, {-1, -2, -3})});
      ASSERT_THAT(down, IsOk());
      EXPECT_THAT(Values<float>((*down)[0]), ElementsAre(1, 2, 3));
    }
  }
}

TEST(ConditionalBlockTest, RunsOnDevices) {
  CoreOptions options;
  options.plan.place = {PlaceKind::kSim, 0};
  const auto core = MakeCore(kBranch, options);
  ASSERT_NE(core, nullptr);
  for (const float x : {1.0f, -1.0f, 3.0f}) {
    const auto out = core->Run({Floats({2}, {x, x})});
    ASSERT_THAT(out, IsOk());
    const float y = x > 0 ? 2 * x : -x;
    EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(y, y));
  }
}

TEST(ConditionalBlockTest, AFetchOfWhatTheBranchHasNotWrittenSaysSo) {
  const auto core =
      MakeCore({"block 0\n"
                "  var x float32[2]\n  var a bool[1]\n  var v float32[2]\n"
                "  conditional_block(Cond=a, Input=x) -> (Out=v) {sub_block=block:1, "
                "is_scalar_condition=true}\n"
                "block 1 parent=0\n"
                "  scale(X=x) -> (Out=v)\n",
                {"x", "a"},
                {"v"}});
  ASSERT_NE(core, nullptr);
  EXPECT_THAT(core->Run({Floats({2}, {1, 2}), Tensor::Of<bool>({1}, {false})}),
              FailsWith(absl::StatusCode::kNotFound,
                        "what writes it in the block of op #2 conditional_block has not run"));
}

// What only the branch of the run before has written is missed, although shapes are known.
TEST(ConditionalBlockTest, AValueOfTheRunBeforeIsGone) {
  const Case test = {
      "block 0\n"
      "  var x float32[2]\n  var a bool[1]\n  var b bool[1]\n  var v float32[2]\n"
      "  var y float32[2]\n"
      "  scale(X=x) -> (Out=y)\n"
      "  conditional_block(Cond=a, Input=x) -> (Out=v) {sub_block=block:1, "
      "is_scalar_condition=true}\n"
      "  conditional_block(Cond=b, Input=v) -> (Out=y) {sub_block=block:2, "
      "is_scalar_condition=true}\n"
      "block 1 parent=0\n"
      "  scale(X=x) -> (Out=v)\n"
      "block 2 parent=0\n"
      "  scale(X=v) -> (Out=y) {scale=3.0}\n",
      {"x", "a", "b"},
      {"y"}};
  for (const bool garbage_collection : {true, false}) {
    CoreOptions options;
    options.plan.garbage_collection = garbage_collection;
    const auto core = MakeCore(test, options);
    ASSERT_NE(core, nullptr);
    const auto run = [&](bool first, bool second) {
      return core->Run(
          {Floats({2}, {1, 2}), Tensor::Of<bool>({1}, {first}), Tensor::Of<bool>({1}, {second})});
    };
    EXPECT_THAT(run(true, true), IsOk());
    EXPECT_THAT(run(false, true), FailsWith(absl::StatusCode::kNotFound, "'v' has no value"));
    EXPECT_THAT(run(true, true), IsOk());
  }
}

TEST(SelectInputTest, RefusesABranchThatIsNotThere) {
  const auto core =
      MakeCore({"block 0\n  var x float32[1]\n  var mask int32[1]\n  var y float32[1]\n"
                "  select_input(X=[x, x], Mask=mask) -> (Out=y)\n",
                {"x", "mask"},
                {"y"}});
  ASSERT_NE(core, nullptr);
  for (const int32_t mask : {-1, 2}) {
    const auto out = core->Run({Floats({1}, {1}), Tensor::Of<int32_t>({1}, std::vector{mask})});
    EXPECT_THAT(out.status().message(), HasSubstr("selects branch"));
  }
}

// h[t] = h[t - 1] + x[t]; y = all of h.
Case Recurrence(bool reverse) {
  return {absl::StrCat("block 0\n"
                       "  var x float32[-1,2]\n  var h0 float32[2]\n  var h float32[-1,2]\n"
                       "  recurrent(inputs=x, initial_states=h0) -> (outputs=h) {sub_block=block:1,"
                       " ex_states=[\"before\"], states=[\"h\"], reverse=",
                       reverse ? "true" : "false",
                       "}\n"
                       "block 1 parent=0\n"
                       "  var x float32[2]\n  var before float32[2]\n  var h float32[2]\n"
                       "  elementwise_add(X=before, Y=x) -> (Out=h)\n"),
          {"x", "h0"},
          {"h"}};
}

TEST(RecurrentTest, CarriesItsStateForwardAndBack) {
  for (const bool reverse : {false, true}) {
    const auto core = MakeCore(Recurrence(reverse));
    ASSERT_NE(core, nullptr);
    const auto out = core->Run({Floats({3, 2}, {1, 10, 2, 20, 4, 40}), Floats({2}, {0, 100})});
    ASSERT_THAT(out, IsOk());
    if (reverse) {
      EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(7, 170, 6, 160, 4, 140));
    } else {
      EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 110, 3, 130, 7, 170));
    }
    const auto longer = core->Run({Floats({1, 2}, {1, 2}), Floats({2}, {0, 0})});
    ASSERT_THAT(longer, IsOk());
    EXPECT_THAT(Values<float>((*longer)[0]), ElementsAre(1, 2));
    EXPECT_FALSE(core->Run({Floats({0, 2}, {}), Floats({2}, {0, 0})}).ok());
  }
}

// An LSTM's step as pruning by slots leaves it: nothing makes 'c_kept' and 'h_kept'.
//   c = f * c_before + x, with f = sigmoid(x + h_before);  h = tanh(c)
Case PrunedRecurrence(absl::string_view outputs) {
  return {absl::StrCat("block 0\n"
                       "  var x float32[-1,1]\n  var zero float32[1]\n"
                       "  var h float32[-1,1]\n  var c float32[-1,1]\n"
                       "  recurrent(inputs=x, initial_states=[zero, zero]) -> (outputs=",
                       outputs,
                       ") {sub_block=block:1, ex_states=[\"c_before\", \"h_before\"],"
                       " states=[\"c_kept\", \"h_kept\"]}\n"
                       "block 1 parent=0\n"
                       "  var x float32[1]\n  var c_before float32[1]\n  var h_before float32[1]\n"
                       "  var f float32[1]\n  var g float32[1]\n  var k float32[1]\n"
                       "  var c float32[1]\n  var h float32[1]\n"
                       "  elementwise_add(X=x, Y=h_before) -> (Out=g)\n"
                       "  sigmoid(X=g) -> (Out=f)\n"
                       "  elementwise_mul(X=f, Y=c_before) -> (Out=k)\n"
                       "  elementwise_add(X=k, Y=x) -> (Out=c)\n"
                       "  scale(X=h_before) -> (Out=g) {scale=0.0}\n"
                       "  elementwise_add(X=g, Y=c) -> (Out=h)\n"),
          {"x", "zero"},
          {"h", "c"}};
}

TEST(RecurrentTest, FindsStatesThatPruningHasCutOff) {
  const auto core = MakeCore(PrunedRecurrence("[h, c]"));
  ASSERT_NE(core, nullptr);
  const auto out = core->Run({Floats({3, 1}, {1, 2, -1}), Floats({1}, {0})});
  ASSERT_THAT(out, IsOk());
  std::vector<float> expected;
  float c = 0;
  for (const float x : {1.0f, 2.0f, -1.0f}) {
    c = c / (1 + std::exp(-(x + c))) + x;  // h is c
    expected.push_back(c);
  }
  EXPECT_THAT(Values<float>((*out)[0]), Pointwise(FloatNear(1e-6f), expected));
  EXPECT_THAT(Values<float>((*out)[1]), Pointwise(FloatNear(1e-6f), expected));
}

TEST(RecurrentTest, TellsWhichStateIsLost) {
  const Case test = PrunedRecurrence("[h]");
  absl::StatusOr<Program> program = ParseProgram(test.text);
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*std::move(program), test.feeds, {"h"}, nullptr);
  EXPECT_THAT(core.status().message(), HasSubstr("no op of block 1 makes the state 'h_kept'"));
}

}  // namespace
}  // namespace interp::testing::control_flow_ops_test
