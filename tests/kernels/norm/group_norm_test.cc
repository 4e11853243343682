// group_norm and instance_norm of groups of one or two elements, whose variance is next to nothing:
// what is multiplied by 1 / sqrt(epsilon) must not have been rounded.
#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/op_runs.h"

namespace interp::group_norm_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<float>(shape, values);
}

std::vector<float> First(const testing::OpRun& run) {
  return testing::Values<float>(testing::OutputsOf(run)[0]);
}

const Shape kShape = {2, 3};
const Tensor kX = Floats(kShape, {-1.8693084f, 1.3453544f, 0.476957977f, -2.4103129f, 1.7f, 0.1f});
const Tensor kScale = Floats({3}, {0.79847103f, 0.61274886f, 1.3f});

TEST(GroupNormTest, AnElementByItselfIsTheBias) {
  const Tensor bias = Floats({3}, {0, 0, 0});
  for (const char* type : {"group_norm", "instance_norm"}) {
    EXPECT_THAT(First({type, {{"X", kX}, {"Scale", kScale}, {"Bias", bias}}, {"Y"}, "groups=3"}),
                Each(0))
        << type;
  }
}

TEST(GroupNormTest, AnElementByItselfHasNoGradient) {
  const float inverse = 316.22778f;
  const Tensor grad = Floats(kShape, {0.533685f, 0.11437526f, 0.67596817f, -0.5923211f, 0.3f, 7});
  EXPECT_THAT(First({"instance_norm_grad",
                     {{"X", kX},
                      {"Scale", kScale},
                      {"SavedMean", Floats({6}, {kX.data<float>(), kX.data<float>() + 6})},
                      {"SavedVariance", Floats({6}, std::vector<float>(6, inverse))},
                      {"Y@GRAD", grad}},
                     {"X@GRAD"}}),
              Each(0));
}

// Half their distance by sqrt(epsilon), which is much more than that.
TEST(GroupNormTest, NeighboursKeepTheirDistance) {
  const Tensor x = Floats({1, 2}, {3.25f, 3.25f + 0x1p-20f});
  const float half = 0x1p-21f / std::sqrt(1e-5f);
  EXPECT_THAT(First({"group_norm", {{"X", x}}, {"Y"}, "groups=1, epsilon=1e-5"}),
              ElementsAre(FloatNear(-half, 1e-9f), FloatNear(half, 1e-9f)));
}

}  // namespace
}  // namespace interp::group_norm_test
