// Second gradients where no case of Paddle's reaches: no elements, and what is refused.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpRun BatchNorm(const Shape& shape, const Shape& statistics) {
  return {"batch_norm_grad_grad",
          {{"X", Numbers(shape, 1)},
           {"Scale", Numbers({2}, 2)},
           {"SavedMean", Numbers(statistics, 3)},
           {"SavedVariance", Numbers(statistics, 4)},
           {"DY", Numbers(shape, 5)},
           {"DDX", Numbers(shape, 6)}},
          {"DX", "DScale", "DDY"},
          "data_layout=\"NCHW\""};
}

TEST(SecondGradientTest, OfAnEmptyBatchIsZero) {
  const std::vector<Tensor> out = OutputsOf(BatchNorm({0, 2, 3, 3}, {2}));
  EXPECT_EQ(out[0].shape, Shape({0, 2, 3, 3}));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(0, 0));
}

TEST(SecondGradientTest, NamesTheSlotThatDoesNotFit) {
  EXPECT_THAT(RunOp(BatchNorm({2, 2, 3, 3}, {3})).status().message(),
              HasSubstr("input 'SavedMean' has shape [3], expected 2 elements"));
}

TEST(SecondGradientTest, OfAMaxPoolIsRefused) {
  OpRun run{"pool2d_double_grad",
            {{"grad_x@GRAD", Numbers({1, 1, 4, 4}, 1)}},
            {"grad_out@GRAD"},
            "pooling_type=\"max\", ksize=[2,2], strides=[2,2], paddings=[0,0]"};
  EXPECT_THAT(RunOp(run).status().message(), HasSubstr("attribute 'pooling_type' is 'max'"));
  run.attrs = "pooling_type=\"avg\", ksize=[2,2], strides=[2,2], paddings=[0,0]";
  EXPECT_EQ(OutputsOf(run)[0].shape, Shape({1, 1, 2, 2}));
}

}  // namespace
}  // namespace interp::testing
