// auc with the counts of Paddle before 1.7, which later releases cannot run.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

// Two steps of three buckets, without sum and number of runs: the first step is dropped.
TEST(OldAucTest, KeepsStepsAlone) {
  const std::vector<Tensor> out =
      OutputsOf({"auc",
                 {{"Predict", Tensor::Of<float>({2, 1}, {1.0f, 0.0f})},
                  {"Label", Tensor::Of<int64_t>({2, 1}, {1, 1})},
                  {"StatPos", Tensor::Of<int64_t>({2, 3}, {7, 7, 7, 0, 0, 0})},
                  {"StatNeg", Tensor::Of<int64_t>({2, 3}, {7, 7, 7, 1, 1, 0})}},
                 {"AUC", "StatPosOut", "StatNegOut"},
                 "num_thresholds=2, slide_steps=2"});
  EXPECT_THAT(Values<int64_t>(out[1]), ElementsAre(0, 0, 0, 1, 0, 1));
  EXPECT_THAT(Values<int64_t>(out[2]), ElementsAre(1, 1, 0, 0, 0, 0));
  // One positive above both negatives, one level with the lowest.
  EXPECT_THAT(Values<double>(out[0]), ElementsAre(0.625));
}

}  // namespace
}  // namespace interp::testing
