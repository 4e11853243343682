// generate_mask_labels beyond its golden cases: what is covered of a region, and refusals.
#include <limits>

#include "tests/kernels/op_runs.h"

namespace interp::testing::mask_labels_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// One image, a square from 0 to 4 and another from 8 to 12, which is a crowd.
OpRun SquaresRun(const std::vector<float>& rois, const std::vector<int32_t>& labels) {
  const auto count = static_cast<int64_t>(labels.size());
  const Lod objects = {{0, 2}}, regions = {{0, count}};
  return {"generate_mask_labels",
          {{"ImInfo", TensorOf<float>({1, 3}, {20, 20, 2})},
           {"GtClasses", TensorOf<int32_t>({2, 1}, {1, 1}, objects)},
           {"IsCrowd", TensorOf<int32_t>({2, 1}, {0, 1}, objects)},
           {"GtSegms", TensorOf<float>({8, 2}, {0, 0, 4, 0, 4, 4, 0, 4, 8, 8, 12, 8, 12, 12, 8, 12},
                                       {{0, 2}, {0, 1, 2}, {0, 4, 8}})},
           {"Rois", TensorOf<float>({count, 4}, rois, regions)},
           {"LabelsInt32", TensorOf<int32_t>({count, 1}, labels, regions)}},
          {"MaskRois", "RoiHasMaskInt32", "MaskInt32"},
          "num_classes=2, resolution=2"};
}

// The second region has the scale 2 and is from 2 to 6: a quarter of it lies in the square.
TEST(GenerateMaskLabelsTest, CellsOfARegionAreCoveredOrNot) {
  const std::vector<Tensor> out =
      OutputsOf(SquaresRun({0, 0, 8, 8, 4, 4, 12, 12, 20, 20, 24, 24}, {0, 1, 1}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(4, 4, 12, 12, 20, 20, 24, 24));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(1, 2));
  EXPECT_THAT(Values<int32_t>(out[2]),
              ElementsAre(-1, -1, -1, -1, 1, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0));
  for (const Tensor& tensor : out) EXPECT_EQ(tensor.lod, (Lod{{0, 2}}));
}

TEST(GenerateMaskLabelsTest, BackgroundHasNothingToLearn) {
  const std::vector<Tensor> out = OutputsOf(SquaresRun({0, 0, 8, 8, 4, 4, 12, 12}, {-1, 0}));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(1));
  EXPECT_THAT(Values<int32_t>(out[2]), Each(-1));
}

TEST(GenerateMaskLabelsTest, RegionsThatAreNotFiniteAreNotCovered) {
  const float far = std::numeric_limits<float>::infinity();
  const std::vector<Tensor> out = OutputsOf(SquaresRun({-far, 0, far, 4}, {1}));
  EXPECT_EQ(out[2].shape, (Shape{1, 8}));
}

TEST(GenerateMaskLabelsTest, RefusesWhatDoesNotFit) {
  const OpRun run = SquaresRun({0, 0, 8, 8}, {1});
  const Tensor points = Numbers({8, 2}, 1);
  const auto segments = [&](const Lod& lod) {
    Tensor tensor = points;
    tensor.lod = lod;
    return tensor;
  };
  OpRun classes = run;
  classes.attrs = "num_classes=0, resolution=2";
  OpRun resolution = run;
  resolution.attrs = "num_classes=2, resolution=5000";
  ExpectRefusals({
      {SquaresRun({0, 0, 8, 8}, {2}), "'LabelsInt32' has the value 2"},
      {SquaresRun({0, 0, 8, 8}, {-1}), "without 0 and above"},
      {With(run, 2, TensorOf<int32_t>({2, 1}, {1, 1}, {{0, 2}})), "with 0 objects"},
      {With(run, 3, segments({{0, 4, 8}})), "1 levels of LoD, expected points [P,2] and 3 levels"},
      {With(run, 3, segments({{0, 1, 2}, {0, 1, 2}, {0, 4, 8}})), "have 1 and 2 sequences"},
      {With(run, 3, segments({{0, 2}, {0, 1, 2}, {0, 0, 8}})), "polygon 0 of 'GtSegms' has no"},
      {With(run, 0, Numbers({1, 2}, 1)), "'ImInfo' has shape [1,2]"},
      {With(run, 1, TensorOf<int32_t>({3, 1}, {1, 1, 1})), "'GtClasses' has shape [3,1]"},
      {classes, "'num_classes' and 'resolution' are 0 and 2"},
      {resolution, "'num_classes' and 'resolution' are 2 and 5000"},
  });
}

}  // namespace
}  // namespace interp::testing::mask_labels_test
