// fused_softmax_mask_upper_triangle, which Paddle computes on devices alone, beside the masked
// form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

// 0 up to the diagonal, then so much that nothing is left.
Tensor TriangleMask(int64_t n) {
  std::vector<double> values(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) values[i * n + j] = -1e30;
  }
  return Tensor::Of<double>({1, 1, n, n}, values);
}

TEST(SoftmaxMaskTest, TheUpperTriangleDoesNotCount) {
  const Tensor x = Numbers<double>({1, 2, 5, 5}, 1);
  const Tensor grad = Numbers<double>({1, 2, 5, 5}, 2);
  const Tensor masked =
      OutputsOf({"fused_softmax_mask", {{"X", x}, {"Mask", TriangleMask(5)}}, {"Out"}, ""})[0];
  const Tensor triangle =
      OutputsOf({"fused_softmax_mask_upper_triangle", {{"X", x}}, {"Out"}, ""})[0];
  EXPECT_THAT(Values<double>(triangle), Pointwise(DoubleNear(1e-12), Values<double>(masked)));
  const Tensor masked_grad = OutputsOf(
      {"fused_softmax_mask_grad", {{"Softmax", masked}, {"Out@GRAD", grad}}, {"X@GRAD"}, ""})[0];
  const Tensor triangle_grad = OutputsOf({"fused_softmax_mask_upper_triangle_grad",
                                          {{"Out", triangle}, {"Out@GRAD", grad}},
                                          {"X@GRAD"},
                                          ""})[0];
  EXPECT_THAT(Values<double>(triangle_grad),
              Pointwise(DoubleNear(1e-12), Values<double>(masked_grad)));
}

TEST(SoftmaxMaskTest, OtherShapesAreRefused) {
  ExpectRefusals({
      {{"fused_softmax_mask_upper_triangle", {{"X", Numbers({1, 1, 2, 3}, 1)}}, {"Out"}, ""},
       "expected square matrices"},
      {{"fused_softmax_mask",
        {{"X", Numbers({1, 2, 3, 3}, 1)}, {"Mask", Numbers({1, 2, 3, 3}, 1)}},
        {"Out"},
        ""},
       "input 'Mask' has shape"},
  });
}

}  // namespace
}  // namespace interp::testing
