// Rows of ops over boxes.
#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class BoxRows : public RowTest {};
using BoxElements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(BoxRows, BoxElements);

// Boxes whose right and bottom lie beyond left and top.
template <typename T>
Tensor Boxes(int64_t count, uint32_t seed) {
  std::vector<T> values = SomeValues<T>(static_cast<size_t>(count * 4), seed);
  for (size_t i = 0; i < values.size(); i += 4) {
    values[i + 2] = values[i] + T(2.5) + values[i + 2];
    values[i + 3] = values[i + 1] + T(2.5) + values[i + 3];
  }
  return Tensor::Of<T>(Shape({count, 4}), values);
}

TYPED_TEST(BoxRows, SimilaritiesGiveWhatTheHostGives) {
  for (const bool normalized : {false, true}) {
    this->ExpectSameAsHost({"iou_similarity",
                            {{"box_normalized", normalized}},
                            {{"X", Boxes<TypeParam>(33, 1)}, {"Y", Boxes<TypeParam>(29, 2)}}});
  }
  this->ExpectSameAsHost(
      {"iou_similarity", {}, {{"X", Boxes<TypeParam>(3, 1)}, {"Y", Boxes<TypeParam>(0, 2)}}});
}

// Programs compare them with thresholds.
TYPED_TEST(BoxRows, SimilaritiesAndPriorsHaveTheBitsOfTheHost) {
  this->ExpectSameBitsAsHost(
      {"iou_similarity", {}, {{"X", Boxes<TypeParam>(40, 3)}, {"Y", Boxes<TypeParam>(50, 4)}}});
  this->ExpectSameBitsAsHost({"prior_box",
                              {{"min_sizes", std::vector<float>{4.1f, 30.7f}},
                               {"aspect_ratios", std::vector<float>{2, 3.5f}},
                               {"step_w", 7.3f},
                               {"step_h", 6.9f},
                               {"offset", 0.43f}},
                              {{"Input", SomeTensor<TypeParam>({1, 2, 9, 13})},
                               {"Image", SomeTensor<TypeParam>({1, 3, 71, 93})}}});
}

TYPED_TEST(BoxRows, BoxesAreEncodedAsOnTheHost) {
  RowCase row = {"box_coder",
                 {{"code_type", "encode_center_size"}},
                 {{"PriorBox", Boxes<TypeParam>(31, 1)}, {"TargetBox", Boxes<TypeParam>(30, 2)}}};
  this->ExpectSameAsHost(row);
  row.attrs.push_back({"variance", std::vector<float>{0.1f, 0.2f, 0.3f, 0.4f}});
  row.attrs.push_back({"box_normalized", false});
  this->ExpectSameAsHost(row);
}

TYPED_TEST(BoxRows, OffsetsAreDecodedAsOnTheHost) {
  for (const int32_t axis : {0, 1}) {
    for (const bool normalized : {false, true}) {
      const int64_t priors = axis == 0 ? 31 : 30;
      this->ExpectSameAsHost(
          {"box_coder",
           {{"code_type", "decode_center_size"}, {"axis", axis}, {"box_normalized", normalized}},
           {{"PriorBox", Boxes<TypeParam>(priors, 1)},
            {"PriorBoxVar", SomeTensor<TypeParam>({priors, 4}, 3)},
            {"TargetBox", SomeTensor<TypeParam>({30, 31, 4}, 2)}}});
    }
  }
}

TYPED_TEST(BoxRows, PriorsLieAroundTheCellsWhereTheHostHasThem) {
  const std::vector<RowCase::Input> inputs = {{"Input", SomeTensor<TypeParam>({1, 2, 9, 13})},
                                              {"Image", SomeTensor<TypeParam>({1, 3, 70, 90})}};
  for (const bool clip : {false, true}) {
    for (const float step : {0.0f, 7.5f}) {
      this->ExpectSameAsHost({"prior_box",
                              {{"min_sizes", std::vector<float>{4, 30}},
                               {"max_sizes", std::vector<float>{9, 50}},
                               {"aspect_ratios", std::vector<float>{2, 3.5f}},
                               {"variances", std::vector<float>{0.1f, 0.2f, 0.3f, 0.4f}},
                               {"clip", clip},
                               {"step_w", step},
                               {"step_h", step + step},
                               {"offset", 0.4f}},
                              inputs});
    }
  }
  // More priors of a cell than a launch takes.
  this->ExpectSameAsHost(
      {"prior_box",
       {{"min_sizes", std::vector<float>(300, 5)}, {"aspect_ratios", std::vector<float>{1}}},
       inputs});
  this->ExpectSameAsHost({"prior_box",
                          {{"min_sizes", std::vector<float>{4}}},
                          {{"Input", SomeTensor<TypeParam>({1, 2, 0, 13})}, inputs[1]}});
}

TYPED_TEST(BoxRows, CellsOfYoloNetsGiveTheBoxesAndScoresOfTheHost) {
  const Tensor sizes = Tensor::Of<int32_t>(Shape({2, 2}), {120, 90, 33, 77});
  for (const bool iou_aware : {false, true}) {
    for (const bool clip : {false, true}) {
      const int64_t planes = 3 * (5 + 4 + (iou_aware ? 1 : 0));
      this->ExpectSameAsHost(
          {"yolo_box",
           {{"anchors", std::vector<int32_t>{10, 13, 16, 30, 33, 23}},
            {"class_num", int32_t{4}},
            {"conf_thresh", 0.4f},
            {"downsample_ratio", int32_t{16}},
            {"clip_bbox", clip},
            {"scale_x_y", 1.1f},
            {"iou_aware", iou_aware},
            {"iou_aware_factor", 0.3f}},
           {{"X", SomeTensor<TypeParam>({2, planes, 7, 9})}, {"ImgSize", sizes}}});
    }
  }
}

TYPED_TEST(BoxRows, ManyAnchorsAreLeftToTheHost) {
  const std::vector<int32_t> anchors(2 * 17, 10);
  EXPECT_FALSE(RowTest::HasRow({"yolo_box",
                                {{"anchors", anchors}, {"class_num", int32_t{1}}},
                                {{"X", SomeTensor<TypeParam>({1, 17 * 6, 2, 2})},
                                 {"ImgSize", Tensor::Of<int32_t>(Shape({1, 2}), {9, 9})}}}));
}

}  // namespace
}  // namespace interp::cuda_test
