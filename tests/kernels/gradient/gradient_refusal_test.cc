// What AppendBackward refuses: gradients that would read the steps of another trip, or what the op
// has not kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op_def.h"
#include "core/program_parse.h"
#include "passes/train/append_backward.h"
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

// What a branch leaves as it was has a gradient of two parts, a select of both.
TEST(GradientRefusalTest, OfRowsOfWhatABranchWrites) {
  const auto with = [](absl::string_view is_sparse) {
    return absl::StrCat(
        "block 0\n  var w float32[4,2] persistable param\n  var ids int64[2,1] stop_gradient\n"
        "  var go bool[1] stop_gradient\n  var inner step_scopes\n  var a float32[2,2]\n"
        "  var b float32[2,2]\n  var c float32[2,2]\n  var loss float32[1]\n"
        "  fill_constant() -> (Out=ids) {shape=[2, 1], dtype=3, value=1.0}\n"
        "  less_than(X=ids, Y=ids) -> (Out=go)\n"
        "  lookup_table(W=w, Ids=ids) -> (Out=a) {is_sparse=",
        is_sparse,
        "}\n  conditional_block(Cond=go, Input=[]) -> (Out=w, Scope=inner) {sub_block=block:1, "
        "is_scalar_condition=true}\n"
        "  lookup_table(W=w, Ids=ids) -> (Out=b) {is_sparse=",
        is_sparse,
        "}\n  elementwise_mul(X=a, Y=b) -> (Out=c)\n  mean(X=c) -> (Out=loss)\n"
        "block 1 parent=0\n  fill_constant() -> (Out=w) {shape=[4, 2], dtype=5, value=1.0}\n");
  };
  EXPECT_THAT(BackwardOf(with("false")), IsOk());
  EXPECT_THAT(BackwardOf(with("true")), FailsWith(absl::StatusCode::kUnimplemented, "'w'"));
}

std::string KeptInTraining(const std::string& op, const std::string& attrs) {
  return absl::StrCat(
      "block 0\n  var w float64[2,4] persistable param lod=1\n  var a float64[4,4]\n"
      "  var b float64[1,4]\n  var h float64[2,4]\n  var kept float64[2,4]\n"
      "  var more float64[2,4]\n  var mask uint8[2,4]\n  var loss float64[1]\n  ",
      op, attrs, "}\n  mean(X=h) -> (Out=loss)\n");
}

TEST(GradientRefusalTest, OfWhatATestDoesNotKeep) {
  const auto keeps_nothing = FailsWith(absl::StatusCode::kInvalidArgument, "keeps nothing");
  const std::string max = "sequence_pool(X=w) -> (Out=h, MaxIndex=kept) {pooltype=\"MAX\"";
  const std::string sum = "sequence_pool(X=w) -> (Out=h) {pooltype=\"SUM\"";
  const std::string gru =
      "gru(Input=w, Weight=a) -> (Hidden=h, BatchGate=kept, BatchResetHiddenPrev=more) {"
      "origin_mode=false";
  const std::string lstm =
      "lstm(Input=w, Weight=a, Bias=b) -> (Hidden=h, BatchGate=kept, BatchCellPreAct=more) {"
      "use_peepholes=false";
  const std::string rnn =
      "rnn(Input=w, PreState=b, WeightList=[a, a, b, b]) -> (Out=h, DropoutState=mask, "
      "Reserve=kept, State=more) {"
      "mode=\"RNN_TANH\"";
  for (const std::string& op : {max, gru, lstm, rnn}) {
    EXPECT_THAT(BackwardOf(KeptInTraining(op, ", is_test=true")), keeps_nothing) << op;
    EXPECT_THAT(BackwardOf(KeptInTraining(op, ", is_test=false")), IsOk()) << op;
  }
  EXPECT_THAT(BackwardOf(KeptInTraining(sum, ", is_test=true")), IsOk());
}

}  // namespace
}  // namespace interp::testing
