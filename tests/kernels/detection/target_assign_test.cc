// target_assign, which Paddle 2.6 no longer has: by its definition, and inputs that are refused.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

// Two images with 1 and 2 boxes, three priors.
OpRun Assignment(const std::vector<int32_t>& matches, const std::vector<int32_t>& negatives) {
  OpRun run = {"target_assign",
               {{"X", TensorOf<float>({3, 1, 2}, {1, 2, 3, 4, 5, 6}, {{0, 1, 3}})},
                {"MatchIndices", TensorOf<int32_t>({2, 3}, matches)}},
               {"Out", "OutWeight"},
               "mismatch_value=9"};
  if (!negatives.empty()) {
    const auto count = static_cast<int64_t>(negatives.size());
    run.inputs.push_back({"NegIndices", TensorOf<int32_t>({count, 1}, negatives, {{0, 1, count}})});
  }
  return run;
}

TEST(TargetAssignTest, TakesMatchesOfTheImagesOwnRows) {
  const std::vector<Tensor> out = OutputsOf(Assignment({0, -1, 0, 1, 0, -1}, {}));
  EXPECT_EQ(out[0].shape, (Shape{2, 3, 2}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(1, 2, 9, 9, 1, 2, 5, 6, 3, 4, 9, 9));
  EXPECT_EQ(out[1].shape, (Shape{2, 3, 1}));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(1, 0, 1, 1, 1, 0));
}

TEST(TargetAssignTest, NegativesCountWithTheMismatchValue) {
  const std::vector<Tensor> out = OutputsOf(Assignment({0, -1, 0, 1, 0, -1}, {1, 1, 2}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(1, 2, 9, 9, 1, 2, 5, 6, 9, 9, 9, 9));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(TargetAssignTest, ColumnsRepeatOverPriors) {
  const std::vector<Tensor> out =
      OutputsOf({"target_assign",
                 {{"X", TensorOf<int32_t>({1, 2, 1}, {7, 8}, {{0, 1}})},
                  {"MatchIndices", TensorOf<int32_t>({1, 4}, {0, 0, -1, 0})}},
                 {"Out", "OutWeight"},
                 ""});
  EXPECT_THAT(Values<int32_t>(out[0]), ElementsAre(7, 8, 0, 8));
}

TEST(TargetAssignTest, RefusesIndicesOutsideAndListsThatDoNotFit) {
  OpRun no_lod = Assignment({0, -1, 0, 1, 0, -1}, {});
  no_lod.inputs[0].second.lod.clear();
  ExpectRefusals({{Assignment({0, -1, 1, 1, 0, -1}, {}), "matches row 1 of an image with 1"},
                  {Assignment({0, -1, 0, 1, 0, -1}, {3, 0}), "names prior 3 of 3"},
                  {Assignment({0, -1, 0, 1, 0, -1}, {-1, 0}), "names prior -1 of 3"},
                  {no_lod, "'X'"}});
}

}  // namespace
}  // namespace interp::testing
