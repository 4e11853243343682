#include "kernels/cuda/conv.h"

#include <vector>

#include "tests/cuda/conv_test.h"

namespace interp::cuda_test {
namespace {

using cuda::ConvDirection;
using cuda::ConvTask;

const std::vector<ConvCase>& ConvCases() {
  static const auto& cases = *new std::vector<ConvCase>{
      {.name = "one pixel", .image = {1, 1, 1, 1}, .filter = {1, 1, 1, 1}},
      {.name = "plain", .image = {2, 3, 7, 6}, .filter = {4, 3, 3, 2}},
      {.name = "strides and padding",
       .image = {2, 3, 8, 9},
       .filter = {5, 3, 3, 3},
       .strides = {2, 3},
       .paddings = {1, 2}},
      {.name = "dilated",
       .image = {1, 2, 9, 9},
       .filter = {3, 2, 3, 3},
       .paddings = {2, 0},
       .dilations = {2, 3}},
      {.name = "groups", .image = {2, 6, 5, 5}, .filter = {4, 3, 3, 3}, .groups = 2},
      {.name = "depthwise",
       .image = {2, 4, 6, 5},
       .filter = {8, 1, 3, 3},
       .strides = {2, 2},
       .paddings = {1, 1},
       .groups = 4},
      {.name = "uneven padding",
       .image = {2, 3, 6, 7},
       .filter = {4, 3, 3, 3},
       .paddings = {0, 2, 3, 1}},
      {.name = "uneven padding and strides",
       .image = {1, 2, 7, 8},
       .filter = {3, 2, 3, 3},
       .strides = {2, 2},
       .paddings = {1, 0, 0, 1}},
      {.name = "same",
       .image = {2, 2, 7, 8},
       .filter = {3, 2, 4, 3},
       .strides = {2, 2},
       .padding_algorithm = "SAME"},
  };
  return cases;
}

template <typename T>
class CudaConv : public ConvTest {};
TYPED_TEST_SUITE(CudaConv, Floats);

TYPED_TEST(CudaConv, GivesWhatTheHostGives) {
  for (const ConvCase& c : ConvCases()) {
    for (const size_t offset : {0, 1}) {
      SCOPED_TRACE(absl::StrCat(c.name, ", offset ", offset));
      const ConvTask task = {.direction = ConvDirection::kForward,
                             .dtype = DTypeOf<TypeParam>,
                             .problem = ProblemOf(c)};
      const auto image = SomeValues<TypeParam>(NumelOf(c.image), 1);
      const auto filter = SomeValues<TypeParam>(NumelOf(c.filter), 2);
      const auto want = OnHost<TypeParam>(
          "conv2d", AttrsOf(c),
          {{"Input", TensorOf(c.image, image)}, {"Filter", TensorOf(c.filter, filter)}});
      ExpectClose(this->Compute(task, image, filter, want.size(), offset), want);
    }
  }
}

TYPED_TEST(CudaConv, GivesTheGradientsThatTheHostGives) {
  for (const ConvCase& c : ConvCases()) {
    SCOPED_TRACE(c.name);
    ConvTask task = {.dtype = DTypeOf<TypeParam>, .problem = ProblemOf(c)};
    const Shape result = nn::ConvOutputShape(task.problem, /*channels_last_dims=*/false);
    const std::vector<int64_t> dims(result.begin(), result.end());
    const auto image = SomeValues<TypeParam>(NumelOf(c.image), 1);
    const auto filter = SomeValues<TypeParam>(NumelOf(c.filter), 2);
    const auto grad = SomeValues<TypeParam>(NumelOf(dims), 3);
    const auto bias = SomeValues<TypeParam>(dims[1], 4);  // the host's op wants one
    const std::vector<testing::OneOp::Input> inputs = {{"Input", TensorOf(c.image, image)},
                                                       {"Filter", TensorOf(c.filter, filter)},
                                                       {"Bias", TensorOf({dims[1]}, bias)},
                                                       {"Output@GRAD", TensorOf(dims, grad)}};
    task.direction = ConvDirection::kDataGrad;
    ExpectClose(this->Compute(task, filter, grad, image.size()),
                OnHost<TypeParam>("conv2d_grad", AttrsOf(c), inputs, 0));
    task.direction = ConvDirection::kFilterGrad;
    ExpectClose(this->Compute(task, image, grad, filter.size()),
                OnHost<TypeParam>("conv2d_grad", AttrsOf(c), inputs, 1));
  }
}

TEST_F(ConvTest, TakesVolumes) {
  nn::ConvAttrs attrs;
  attrs.window = {.strides = {1, 2, 1}, .paddings = {1, 0, 1}, .dilations = {}};
  const std::vector<int64_t> image_dims = {1, 2, 3, 5, 4};
  const std::vector<int64_t> filter_dims = {3, 2, 2, 3, 3};
  const auto problem = nn::ResolveConv(attrs, Shape(image_dims), Shape(filter_dims));
  ASSERT_TRUE(problem.ok());
  const auto image = SomeValues<float>(NumelOf(image_dims), 1);
  const auto filter = SomeValues<float>(NumelOf(filter_dims), 2);
  const auto want = OnHost<float>(
      "conv3d",
      {{"strides", std::vector<int32_t>{1, 2, 1}}, {"paddings", std::vector<int32_t>{1, 0, 1}}},
      {{"Input", TensorOf(image_dims, image)}, {"Filter", TensorOf(filter_dims, filter)}});
  ExpectClose(Compute({.problem = *problem}, image, filter, want.size()), want);
}

TEST_F(ConvTest, RejectsDTypesThatItDoesNotCompute) {
  const ConvCase c = {.name = "", .image = {1, 2, 6, 6}, .filter = {3, 2, 3, 3}};
  const ConvTask task = {.dtype = DType::kFloat64, .problem = ProblemOf(c)};
  EXPECT_EQ(Run(task, {}).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace interp::cuda_test
