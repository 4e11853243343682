// Where resampled pixels come from, to the precision of float64: the first versions of the ops
// round the centres of pixels otherwise than the second ones.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/kernels/op_runs.h"

namespace interp::interpolate_test {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

std::vector<double> First(const testing::OpRun& run) {
  return testing::Values<double>(testing::OutputsOf(run)[0]);
}

// Of four pixels to seven: target 3 has its centre at 1.5, and a float's error beyond.
TEST(InterpolateTest, FirstVersionsRoundACentreOnce) {
  const Tensor x = Tensor::Of<double>({1, 1, 4}, {0, 1, 2, 3});
  const std::string attrs = "align_corners=false, align_mode=0, out_w=7";
  EXPECT_EQ(First({"linear_interp", {{"X", x}}, {"Out"}, attrs})[3], double{1.5f + 0x1p-23f});
  EXPECT_EQ(First({"linear_interp_v2", {{"X", x}}, {"Out"}, attrs})[3], 1.5);
}

TEST(InterpolateTest, GradientOfTheFirstBicubicHasItsWeights) {
  const std::string attrs = "align_corners=false, out_h=1, out_w=7";
  std::vector<double> weights, gradients;
  for (int target = 0; target < 7; ++target) {
    std::vector<double> one(7, 0.0);
    one[target] = 1;
    const Tensor x = Tensor::Of<double>({1, 1, 1, 4}, {0, 1, 0, 0});
    const Tensor out_grad = Tensor::Of<double>({1, 1, 1, 7}, one);
    weights.push_back(First({"bicubic_interp", {{"X", x}}, {"Out"}, attrs})[target]);
    gradients.push_back(
        First({"bicubic_interp_grad", {{"X", x}, {"Out@GRAD", out_grad}}, {"X@GRAD"}, attrs})[1]);
  }
  EXPECT_THAT(gradients, Pointwise(DoubleNear(1e-12), weights));
}

}  // namespace
}  // namespace interp::interpolate_test
