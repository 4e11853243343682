// rpn_target_assign, retinanet_target_assign and generate_proposal_labels: without random numbers
// against what Paddle 2.6.2 computes, with them by what a sample must hold, and inputs that are
// refused.
#include <algorithm>
#include <set>

#include "tests/kernels/op_runs.h"

namespace interp::testing::region_targets_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

MATCHER_P(IsNear, expected, "") {
  return ::testing::ExplainMatchResult(Pointwise(FloatNear(1e-6F), expected), arg, result_listener);
}

// Two images: three boxes, one of a crowd, and one box; scaled by 2.
const Lod kImages = {{0, 3, 4}};

Tensor TrueBoxes() {
  return TensorOf<float>({4, 4}, {1, 0, 5, 5, 6, 5, 9, 9, 10, 10, 14, 14, 0, 0, 4, 4}, kImages);
}
Tensor Crowds() { return TensorOf<int32_t>({4, 1}, {0, 1, 0, 0}, kImages); }
Tensor ImageInfo() { return TensorOf<float>({2, 3}, {30, 30, 2, 30, 40, 2}); }

OpRun RpnRun(const std::string& attrs) {
  const Tensor anchors =
      TensorOf<float>({8, 4}, {0,  0,  9,  9,  5,  5, 14, 14, 10, 10, 19, 19, 2, 0, 11, 9,
                               20, 20, 29, 29, -3, 2, 6,  11, 24, 4,  33, 13, 0, 0, 29, 29});
  return {"rpn_target_assign",
          {{"Anchor", anchors},
           {"GtBoxes", TrueBoxes()},
           {"IsCrowd", Crowds()},
           {"ImInfo", ImageInfo()}},
          {"LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight"},
          attrs};
}

constexpr float kShrink = -0.105360545F;
constexpr float kGrow = 0.0953102F;

TEST(RpnTargetAssignTest, TakesTheFirstOfBothKinds) {
  const std::vector<Tensor> out = OutputsOf(
      RpnRun("rpn_batch_size_per_im=6, rpn_straddle_thresh=0.0, rpn_positive_overlap=0.6, "
             "rpn_negative_overlap=0.3, rpn_fg_fraction=0.5, use_random=false"));
  EXPECT_THAT(Values<int32_t>(out[0]), ElementsAre(0, 3, 4, 8));
  EXPECT_EQ(out[0].lod, (Lod{{0, 3, 4}}));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(0, 3, 4, 1, 2, 7, 8, 9, 10, 12, 14, 15));
  EXPECT_EQ(out[1].lod, (Lod{{0, 6, 12}}));
  EXPECT_EQ(out[2].lod, (Lod{{0, 3, 4}}));
  EXPECT_THAT(Values<float>(out[2]), IsNear(std::vector<float>{0.15F, 0.05F, kShrink, kGrow,      //
                                                               -0.05F, 0.05F, kShrink, kGrow,     //
                                                               -0.05F, -0.05F, kShrink, kShrink,  //
                                                               -0.05F, -0.05F, kShrink, kShrink}));
  EXPECT_EQ(out[3].shape, (Shape{12, 1}));
  EXPECT_THAT(Values<int32_t>(out[3]), ElementsAre(1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(Values<float>(out[4]), Each(1.0F));
}

TEST(RpnTargetAssignTest, AllAnchorsCountWithANegativeThreshold) {
  const std::vector<Tensor> out =
      OutputsOf(RpnRun("rpn_batch_size_per_im=5, rpn_straddle_thresh=-1.0, "
                       "rpn_positive_overlap=0.4, rpn_negative_overlap=0.45, rpn_fg_fraction=0.4, "
                       "use_random=false"));
  EXPECT_THAT(Values<int32_t>(out[0]), ElementsAre(0, 3, 8, 11));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(0, 3, 1, 2, 5, 8, 11, 9, 10, 12));
  EXPECT_EQ(out[1].lod, (Lod{{0, 5, 10}}));
  EXPECT_THAT(Values<int32_t>(out[3]), ElementsAre(1, 1, 0, 0, 0, 1, 1, 0, 0, 0));
}

// Anchors 3, 4 and 8 overlap a box best, but by less than what makes background.
TEST(RpnTargetAssignTest, WhatIsBothIsBackgroundAndLeavesOffsetsWithoutWeight) {
  const std::vector<Tensor> out =
      OutputsOf(RpnRun("rpn_batch_size_per_im=7, rpn_straddle_thresh=-1.0, "
                       "rpn_positive_overlap=0.97, rpn_negative_overlap=0.95, rpn_fg_fraction=0.6, "
                       "use_random=false"));
  EXPECT_THAT(Values<int32_t>(out[0]), ElementsAre(3, 3, 8));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13));
  EXPECT_EQ(out[1].lod, (Lod{{0, 5, 11}}));
  EXPECT_THAT(Values<float>(out[2]),
              IsNear(std::vector<float>{-0.05F, 0.05F, kShrink, kGrow, -0.05F, 0.05F, kShrink,
                                        kGrow, -0.05F, -0.05F, kShrink, kShrink}));
  EXPECT_THAT(Values<int32_t>(out[3]), Each(0));
  EXPECT_THAT(Values<float>(out[4]), Each(0.0F));
}

// Anchors by number, for foreground and background of the first image.
TEST(RpnTargetAssignTest, SamplesAreOfBothKinds) {
  std::set<std::vector<int32_t>> seen;
  for (uint64_t seed = 1; seed < 30; ++seed) {
    const std::vector<Tensor> out =
        OutputsOf(RpnRun("rpn_batch_size_per_im=4, rpn_straddle_thresh=-1.0, "
                         "rpn_positive_overlap=0.6, rpn_negative_overlap=0.3, rpn_fg_fraction=0.5"),
                  {.random_seed = seed});
    ASSERT_EQ(out[1].lod, (Lod{{0, 4, 8}}));
    const std::vector<int32_t> chosen = Values<int32_t>(out[1]);
    EXPECT_THAT(Values<int32_t>(out[3]), ElementsAreArray({1, 1, 0, 0, 1, 0, 0, 0}));
    for (const int i : {0, 1}) EXPECT_THAT(chosen[i], ::testing::AnyOf(0, 3, 4));
    for (const int i : {2, 3}) EXPECT_THAT(chosen[i], ::testing::AnyOf(1, 2, 5, 6, 7));
    seen.insert(chosen);
  }
  EXPECT_GT(seen.size(), 5);
}

OpRun RetinanetRun() {
  OpRun run = RpnRun("positive_overlap=0.5, negative_overlap=0.4");
  run.type = "retinanet_target_assign";
  run.inputs.push_back({"GtLabels", TensorOf<int32_t>({4, 1}, {3, 2, 5, 7}, kImages)});
  run.outputs.push_back("ForegroundNumber");
  return run;
}

TEST(RetinanetTargetAssignTest, TakesAllAndLabelsThemByClass) {
  const std::vector<Tensor> out = OutputsOf(RetinanetRun());
  EXPECT_THAT(Values<int32_t>(out[0]), ElementsAre(0, 3, 4, 8, 11));
  EXPECT_EQ(out[0].lod, (Lod{{0, 3, 5}}));
  EXPECT_THAT(Values<int32_t>(out[1]),
              ElementsAre(0, 3, 4, 1, 2, 5, 6, 7, 8, 11, 9, 10, 12, 13, 14, 15));
  EXPECT_THAT(Values<int32_t>(out[3]), ElementsAre(3, 3, 5, 0, 0, 0, 0, 0, 7, 7, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(out[5].shape, (Shape{2, 1}));
  EXPECT_EQ(out[5].lod, (Lod{{0, 1, 2}}));
  EXPECT_THAT(Values<int32_t>(out[5]), ElementsAre(4, 3));
}

TEST(AnchorTargetsTest, ImagesOfCrowdsAloneHaveNoForeground) {
  const std::vector<Tensor> out =
      OutputsOf(With(RetinanetRun(), 2, TensorOf<int32_t>({4, 1}, {1, 1, 1, 1}, kImages)));
  EXPECT_EQ(out[0].numel(), 0);
  EXPECT_THAT(Values<int32_t>(out[3]), ElementsAreArray(std::vector<int32_t>(16)));
}

TEST(AnchorTargetsTest, RefuseWhatDoesNotFit) {
  OpRun no_lod = RetinanetRun();
  no_lod.inputs[1].second.lod.clear();
  ExpectRefusals({
      {no_lod, "'GtBoxes'"},
      {With(RetinanetRun(), 0, Numbers({8, 5}, 1)), "expected boxes [N,4]"},
      {With(RetinanetRun(), 2, TensorOf<int32_t>({3, 1}, {0, 0, 0})), "'IsCrowd' has shape [3,1]"},
      {With(RetinanetRun(), 3, Numbers({3, 3}, 1)), "'ImInfo' has shape [3,3], expected [2,3]"},
      {With(RetinanetRun(), 4, TensorOf<int32_t>({5, 1}, {1, 1, 1, 1, 1})),
       "'GtLabels' has shape [5,1]"},
      {RpnRun("rpn_fg_fraction=1.5"), "'rpn_fg_fraction' is 1.5"},
  });
}

OpRun ProposalRun(const std::string& attrs) {
  const Tensor rois =
      TensorOf<float>({7, 4}, {2,  0,  11, 10, 10, 10, 19, 19, 20, 20, 27, 28, 0,  0,
                               29, 29, 0,  0,  8,  8,  12, 12, 20, 20, 30, 10, 39, 20},
                      {{0, 4, 7}});
  return {"generate_proposal_labels",
          {{"RpnRois", rois},
           {"GtClasses", TensorOf<int32_t>({4, 1}, {3, 2, 1, 2}, kImages)},
           {"IsCrowd", Crowds()},
           {"GtBoxes", TrueBoxes()},
           {"ImInfo", ImageInfo()}},
          {"Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights",
           "MaxOverlapWithGT"},
          attrs};
}
const char kThresholds[] =
    "batch_size_per_im=5, fg_fraction=0.5, fg_thresh=0.5, bg_thresh_hi=0.5, bg_thresh_lo=0.0, "
    "bbox_reg_weights=[0.1,0.1,0.2,0.2]";

// The columns of a class in each row, and how many of the others are not 0.
template <typename T>
std::vector<T> ColumnsOf(const Tensor& tensor, int64_t row, int64_t label) {
  const T* const first = tensor.data<T>() + row * tensor.shape[1] + 4 * label;
  return {first, first + 4};
}
int64_t NonZeros(const Tensor& tensor) {
  const std::vector<float> values = Values<float>(tensor);
  return std::ssize(values) - std::count(values.begin(), values.end(), 0.0F);
}

TEST(GenerateProposalLabelsTest, TakesTheFirstOfBothKinds) {
  const std::vector<Tensor> out =
      OutputsOf(ProposalRun(absl::StrCat(kThresholds, ", class_nums=4, use_random=false")));
  EXPECT_EQ(out[0].lod, (Lod{{0, 3, 7}}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(2, 0, 10, 10, 20, 20, 28, 28, 0, 0, 29, 29, 0, 0,
                                                 8, 8, 0, 0, 8, 8, 12, 12, 20, 20, 30, 10, 39, 20));
  EXPECT_EQ(out[1].shape, (Shape{7, 1}));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(3, 1, 0, 2, 2, 0, 0));
  EXPECT_EQ(out[2].shape, (Shape{7, 16}));
  EXPECT_THAT(Values<float>(out[2]), Each(0.0F));
  for (const Tensor& weights : {out[3], out[4]}) {
    EXPECT_EQ(NonZeros(weights), 16);
    EXPECT_THAT(ColumnsOf<float>(weights, 0, 3), Each(1.0F));
    EXPECT_THAT(ColumnsOf<float>(weights, 1, 1), Each(1.0F));
    EXPECT_THAT(ColumnsOf<float>(weights, 3, 2), Each(1.0F));
    EXPECT_THAT(ColumnsOf<float>(weights, 4, 2), Each(1.0F));
  }
  EXPECT_THAT(Values<float>(out[5]), IsNear(std::vector<float>{1, 1, 0.12486993F, 1, 1, 0, 0}));
}

TEST(GenerateProposalLabelsTest, LaterStagesTakeAllButTrueBoxes) {
  OpRun run = ProposalRun(absl::StrCat(
      kThresholds, ", class_nums=2, is_cascade_rcnn=true, is_cls_agnostic=true, use_random=false"));
  run.inputs.push_back({"MaxOverlap", TensorOf<float>({7}, {0.9F, 1, 0.2F, 0.3F, 1, 1, 1})});
  const std::vector<Tensor> out = OutputsOf(run);
  EXPECT_EQ(out[0].lod, (Lod{{0, 5, 7}}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(2, 0, 10, 10, 20, 20, 28, 28, 2, 0, 11, 10, 20, 20,
                                                 27, 28, 0, 0, 29, 29, 0, 0, 8, 8, 0, 0, 0, 0));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(3, 1, 3, 1, 0, 2, 0));
  EXPECT_EQ(NonZeros(out[2]), 4);
  EXPECT_THAT(ColumnsOf<float>(out[2], 2, 1),
              IsNear(std::vector<float>{-0.45454547F, 0, -0.47655076F, 0}));
  EXPECT_THAT(ColumnsOf<float>(out[2], 3, 1),
              IsNear(std::vector<float>{0.5555555F, 0, 0.52680278F, 0}));
  EXPECT_EQ(NonZeros(out[3]), 20);
  EXPECT_THAT(Values<float>(out[5]),
              IsNear(std::vector<float>{1, 1, 0.90909094F, 0.9F, 0.12486993F, 1, 0.04F}));
}

TEST(GenerateProposalLabelsTest, SamplesAreOfBothKinds) {
  std::set<std::vector<float>> seen;
  for (uint64_t seed = 1; seed < 30; ++seed) {
    const std::vector<Tensor> out =
        OutputsOf(ProposalRun("batch_size_per_im=2, fg_fraction=0.5, fg_thresh=0.5, "
                              "bg_thresh_hi=0.5, bg_thresh_lo=0.0, class_nums=4"),
                  {.random_seed = seed});
    ASSERT_EQ(out[0].lod, (Lod{{0, 2, 4}}));
    const std::vector<int32_t> labels = Values<int32_t>(out[1]);
    EXPECT_GT(labels[0], 0);
    EXPECT_EQ(labels[2], 2);
    EXPECT_EQ(labels[1] + labels[3], 0);
    seen.insert(Values<float>(out[0]));
  }
  EXPECT_GT(seen.size(), 2);
}

TEST(GenerateProposalLabelsTest, RefusesWhatDoesNotFit) {
  const std::string four = absl::StrCat(kThresholds, ", class_nums=4");
  ExpectRefusals({
      {ProposalRun(absl::StrCat(kThresholds, ", class_nums=3, use_random=false")),
       "'GtClasses' has the value 3"},
      {ProposalRun(absl::StrCat(four, ", is_cascade_rcnn=true")), "'MaxOverlap' is missing"},
      {With(ProposalRun(four), 3, TensorOf<float>({1, 4}, {0, 0, 1, 1}, {{0, 1}})),
       "have 2 and 1 sequences"},
      {With(ProposalRun(four), 4, Numbers({2, 2}, 1)), "'ImInfo' has shape [2,2]"},
      {ProposalRun("batch_size_per_im=5, class_nums=0"), "'class_nums' is 0"},
  });
}

}  // namespace
}  // namespace interp::testing::region_targets_test
