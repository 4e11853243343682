// Gradients of ops whose axes come from a variable take them from there, too.
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/testing/matchers.h"

namespace interp::tensor_axes_gradient_test {
namespace {

using testing::IsOk;

// d(mean(sum over axis 1 of x, times w)) / dx, where the attribute or its default says axis 0.
void ExpectGradientAlongRows(absl::string_view sum) {
  absl::StatusOr<Program> program = ParseProgram(absl::StrCat(R"(block 0
  var x float32[3,3]
  var a int32[1]
  var w float32[3]
  var y float32[3]
  var z float32[3]
  var loss float32[]
  )",
                                                              sum, R"(
  elementwise_mul(X=y, Y=w) -> (Out=z)
  mean(X=z) -> (Out=loss)
)"));
  ASSERT_THAT(program, IsOk());
  for (Var& var : program->blocks[0].vars) var.stop_gradient = false;
  const auto backward =
      AppendBackward(*std::move(program), {.loss = "loss", .sources = {"x"}}, OpRegistry::Global());
  ASSERT_THAT(backward, IsOk());
  const auto core =
      InterpreterCore::Create(backward->program, {"x", "a", "w"}, {"x@GRAD"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const Tensor ones = Tensor::Of<float>({3, 3}, std::vector<float>(9, 1));
  const auto gradients =
      (*core)->Run({ones, Tensor::Of<int32_t>({1}, {1}), Tensor::Of<float>({3}, {3, 6, 9})});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ(testing::Values<float>((*gradients)[0]),
            (std::vector<float>{1, 1, 1, 2, 2, 2, 3, 3, 3}));
}

TEST(TensorAxesGradientTest, OfASlot) {
  ExpectGradientAlongRows("reduce_sum(X=x, AxisTensor=a) -> (Out=y) {dim=[0]}");
}

TEST(TensorAxesGradientTest, OfAnAttributeThatIsAVariable) {
  ExpectGradientAlongRows("reduce_sum(X=x) -> (Out=y) {dim=var:a}");
}

}  // namespace
}  // namespace interp::tensor_axes_gradient_test
