// What is computed again must be what it was, also where variables are written several times. That
// training goes where it goes without is tests/goldens' matter.
#include "passes/train/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/edit_op.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "passes/train/append_backward.h"
#include "passes/verify.h"
#include "tests/testing/fake_ops.h"

namespace interp {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kDeclarations =
    "program version=0\n"
    "block 0\n"
    "  var x float32[4,3]\n"
    "  var w float32[3,2] persistable parameter\n"
    "  var a float32[4,2]\n"
    "  var h float32[4,2]\n"
    "  var y float32[4,2]\n"
    "  var z float32[4,2]\n"
    "  var loss float32[]\n"
    "  mul(X=x, Y=w) -> (Out=a) {x_num_col_dims=1}\n";

Program Differentiated(absl::string_view ops) {
  auto program = ParseProgram(absl::StrCat(kDeclarations, ops));
  EXPECT_TRUE(program.ok()) << program.status();
  auto backward = AppendBackward(*std::move(program), {.loss = "loss"}, testing::FakeOps());
  EXPECT_TRUE(backward.ok()) << backward.status();
  return std::move(backward->program);
}

std::string Recomputed(Program program, int* count) {
  auto result = Recompute(std::move(program), {"z"}, testing::FakeOps());
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(VerifyStructure(result->program).ok()) << VerifyStructure(result->program);
  *count = result->num_recomputed;
  return ToText(result->program);
}

TEST(RecomputeTest, ComputesAgainBeforeTheFirstReader) {
  int count = 0;
  const std::string text = Recomputed(Differentiated("  relu(X=a) -> (Out=h)\n"
                                                     "  relu(X=h) -> (Out=y)\n"
                                                     "  scale(X=y) -> (Out=z) {scale=2.0}\n"
                                                     "  mean(X=z) -> (Out=loss)\n"),
                                      &count);
  EXPECT_EQ(count, 3);
  EXPECT_THAT(text, HasSubstr("relu(X=h.subprog_0) -> (Out=y.subprog_0)"));
}

TEST(RecomputeTest, OpsWhoseInputsAreWrittenAgainStay) {
  int count = 0;
  const std::string text = Recomputed(Differentiated("  split(X=a) -> (Out=[h])\n"
                                                     "  relu(X=h) -> (Out=y)\n"
                                                     "  relu(X=y) -> (Out=z)\n"
                                                     "  scale(X=x) -> (Out=h) {scale=3.0}\n"
                                                     "  mean(X=z) -> (Out=loss)\n"),
                                      &count);
  EXPECT_EQ(count, 0);
  EXPECT_THAT(text, HasSubstr("relu_grad(Out=y, "));
}

TEST(RecomputeTest, NothingIsComputedWithUpdatedParameters) {
  Program program = Differentiated(
      "  relu(X=a) -> (Out=h)\n"
      "  scale(X=h) -> (Out=z) {scale=2.0}\n"
      "  mean(X=z) -> (Out=loss)\n");
  // Only what comes behind the update reads h.
  std::vector<Op>& ops = program.blocks[0].ops;
  std::erase_if(ops, [](const Op& op) { return op.type == "relu_grad" || op.type == "mul_grad"; });
  const VarId w = program.Find("w");
  const VarId h = program.Find("h");
  const auto scale = [](VarId from, VarId to) {
    Op op;
    op.type = "scale";
    AddInput(op, "X", {from});
    AddOutput(op, "Out", {to});
    SetAttr(op, "op_role", int32_t{2});
    return op;
  };
  ops.push_back(scale(w, w));
  ops.push_back(scale(h, program.Intern("seen")));
  int count = 0;
  const std::string text = Recomputed(std::move(program), &count);
  EXPECT_EQ(count, 0);
  EXPECT_THAT(text, HasSubstr("scale(X=h) -> (Out=seen)"));
}

// The averages move once, whichever way the momentum is given.
TEST(RecomputeTest, ABatchNormOfAgainLeavesTheAverages) {
  Program program = Differentiated(
      "  relu(X=a) -> (Out=h)\n"
      "  scale(X=h) -> (Out=z) {scale=2.0}\n"
      "  mean(X=z) -> (Out=loss)\n");
  Op& norm = program.blocks[0].ops[1];
  norm.type = "batch_norm";
  AddInput(norm, "Mean", {program.Intern("m")});
  AddInput(norm, "Variance", {program.Intern("v")});
  AddInput(norm, "MomentumTensor", {program.Intern("rate")});
  norm.outputs.clear();
  AddOutput(norm, "Y", {program.Find("h")});
  AddOutput(norm, "MeanOut", {program.Find("m")});
  AddOutput(norm, "VarianceOut", {program.Find("v")});
  int count = 0;
  const std::string text = Recomputed(std::move(program), &count);
  EXPECT_EQ(count, 2);
  EXPECT_THAT(text, HasSubstr("batch_norm(X=a, Mean=m, Variance=v, MomentumTensor=rate) -> (Y=h,"));
  EXPECT_THAT(text, HasSubstr("batch_norm(X=a.subprog_0, Mean=m, Variance=v) -> (Y=h.subprog_0,"));
}

TEST(RecomputeTest, CopiesGetNamesOfTheirOwn) {
  int count = 0;
  const std::string text = Recomputed(Differentiated("  relu(X=a) -> (Out=h.subprog_0)\n"
                                                     "  relu(X=h.subprog_0) -> (Out=h)\n"
                                                     "  scale(X=h) -> (Out=z) {scale=2.0}\n"
                                                     "  mean(X=z) -> (Out=loss)\n"),
                                      &count);
  EXPECT_EQ(count, 3);
  EXPECT_THAT(text, HasSubstr("-> (Out=h.subprog_1)"));
}

}  // namespace
}  // namespace interp
