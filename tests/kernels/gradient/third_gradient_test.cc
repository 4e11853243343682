// Gradients of second gradients, which come from the ops that those are made of. Paddle, too, is to
// run such programs: its executor knows no variable without a declaration, and its gradients of
// elementwise ops have no default for `axis`.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "core/each_argument.h"
#include "core/program_parse.h"
#include "passes/train/append_backward.h"
#include "tests/testing/matchers.h"

namespace interp::testing::third_gradient_test {
namespace {

constexpr absl::string_view kProgram =
    "block 0\n"
    "  var w float32[3] persistable param\n"
    "  var y float32[3]\n  var one float32[3]\n  var d float32[3]\n  var dd float32[3]\n"
    "  var loss float32[]\n"
    "  tanh(X=w) -> (Out=y)\n"
    "  fill_any_like(X=y) -> (Out=one) {value=1.0, dtype=-1}\n"
    "  tanh_grad_grad(Out=y, grad_out=one, grad_x@GRAD=one) -> (Out@GRAD=d, grad_out@GRAD=dd)\n"
    "  mean(X=d) -> (Out=loss)\n";

Program Differentiated() {
  absl::StatusOr<Program> program = ParseProgram(kProgram);
  EXPECT_TRUE(program.ok()) << program.status();
  absl::StatusOr<BackwardProgram> backward =
      AppendBackward(*std::move(program), {.loss = "loss"}, OpRegistry::Global());
  EXPECT_TRUE(backward.ok()) << backward.status();
  return std::move(backward->program);
}

TEST(ThirdGradientTest, DeclaresWhatTheSecondOnesAreMadeOf) {
  const Program program = Differentiated();
  const Block& block = program.blocks[0];
  for (const Op& op : block.ops) {
    for (const VarId id : EachArgument(op.outputs)) {
      const auto count = std::count_if(block.vars.begin(), block.vars.end(),
                                       [id](const Var& var) { return var.id == id; });
      EXPECT_EQ(count, 1) << program.NameOf(id);
    }
  }
}

TEST(ThirdGradientTest, GivesElementwiseOpsAnAxis) {
  const Program program = Differentiated();
  int found = 0;
  for (const Op& op : program.blocks[0].ops) {
    if (!absl::StartsWith(op.type, "elementwise_")) continue;
    EXPECT_NE(op.FindAttr("axis"), nullptr) << op.type;
    ++found;
  }
  EXPECT_GT(found, 2);
}

}  // namespace
}  // namespace interp::testing::third_gradient_test
