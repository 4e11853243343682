// Ops of images, detection, training heads and fused ones on inputs that do not fit: each fails
// with what is wrong, and none reads or writes beyond a tensor. Whatever else Paddle's golden cases
// do not show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_runs.h"
#include "tests/testing/golden.h"

namespace interp::testing::detection_and_heads_test {
namespace {

using ::testing::ElementsAre;

template <typename T>
Tensor Of(const Shape& shape, const std::vector<T>& values) {
  return Tensor::Of<T>(shape, values);
}

TEST(PoolingErrorsTest, PositionsOutsideTheImageAreRefused) {
  const Tensor x = Numbers({1, 1, 2, 2}, 1);
  const std::string window = "ksize=[2,2], strides=[2,2], paddings=[0,0]";
  const std::string unpool = window + ", output_size=[3,3]";
  ExpectRefusals({
      {{"unpool",
        {{"X", x}, {"Indices", Of<int32_t>({1, 1, 2, 2}, {0, 4, 9, 1})}},
        {"Out"},
        unpool},
       "'Indices' has the value 9 at position 2, expected 0 to 8"},
      {{"unpool",
        {{"X", x}, {"Indices", Of<int64_t>({1, 1, 2, 2}, {0, -1, 3, 1})}},
        {"Out"},
        unpool},
       "'Indices' has the value -1 at position 1"},
      {{"unpool", {{"X", x}, {"Indices", Numbers({1, 1, 2, 2}, 2)}}, {"Out"}, unpool},
       "input 'Indices' is float32[1,1,2,2], expected int32 or int64"},
      {{"max_pool2d_with_index_grad",
        {{"X", x},
         {"Mask", Of<int32_t>({1, 1, 1, 1}, {4})},
         {"Out@GRAD", Numbers({1, 1, 1, 1}, 3)}},
        {"X@GRAD"},
        window},
       "input 'Mask' has the value 4 at position 0, expected -1 to 3"},
  });
}

TEST(PoolingErrorsTest, ShapesThatDoNotFitAreRefused) {
  ExpectRefusals({
      {{"maxout", {{"X", Numbers({1, 5, 2, 2}, 1)}}, {"Out"}, "groups=2, axis=1"},
       "dim 1 is no multiple of groups 2"},
      {{"maxout", {{"X", Numbers({1, 4, 2, 2}, 1)}}, {"Out"}, "groups=1"},
       "attribute 'groups' is 1, expected more than 1"},
      {{"spp", {{"X", Numbers({1, 2, 5, 3}, 1)}}, {"Out"}, "pyramid_height=3"},
       "too small for 4 x 4 bins"},
      {{"affine_grid", {{"Theta", Numbers({2, 2, 3}, 1)}}, {"Output"}, "output_shape=[2,1,2,2,2]"},
       "input 'Theta' has shape [2,2,3], expected [N,3,4] for images [2,1,2,2,2]"},
      {{"affine_grid", {{"Theta", Numbers({2, 2, 3}, 1)}}, {"Output"}, "output_shape=[2,1,-1,2]"},
       "output_shape [2,1,-1,2]"},
  });
}

// Of the shape only height and width count.
TEST(AffineGridTest, TakesTheBatchOfTheta) {
  Tensor theta = Numbers({2, 2, 3}, 1);
  const auto grid = [&](const std::string& shape) {
    return OutputsOf({"affine_grid", {{"Theta", theta}}, {"Output"}, "output_shape=" + shape});
  };
  const std::vector<Tensor> right = grid("[2,3,2,2]");
  EXPECT_EQ(right[0].shape, (Shape{2, 2, 2, 2}));
  for (const std::string shape : {"[-1,3,2,2]", "[5,3,2,2]", "[-1,-1,2,2]", "[0,0,2,2]"}) {
    EXPECT_TRUE(SameBits(grid(shape), right)) << shape;
    const std::vector<Tensor> gradient =
        OutputsOf({"affine_grid_grad",
                   {{"Theta", theta}, {"Output@GRAD", Numbers({2, 2, 2, 2}, 2)}},
                   {"Theta@GRAD"},
                   "output_shape=" + shape});
    EXPECT_EQ(gradient[0].shape, theta.shape) << shape;
  }
}

TEST(DetectionErrorsTest, ClassesAndCentresOutsideAreRefused) {
  const Lod one = {{0, 1}};
  Tensor detection = Of<float>({1, 6}, {7, 0.5f, 0, 0, 1, 1});
  Tensor label = Of<float>({1, 5}, {1, 0, 0, 1, 1});
  detection.lod = one;
  label.lod = one;
  const std::vector<std::string> outputs = {"AccumPosCount", "AccumTruePos", "AccumFalsePos",
                                            "MAP"};
  const std::string yolo = "anchors=[10,13], anchor_mask=[0], class_num=1, downsample_ratio=8";
  ExpectRefusals({
      {{"detection_map", {{"DetectRes", detection}, {"Label", label}}, outputs, "class_num=3"},
       "input 'DetectRes' has the class 7, expected 0 to 2"},
      {{"detection_map",
        {{"DetectRes", Numbers({1, 6}, 1)}, {"Label", label}},
        outputs,
        "class_num=3"},
       "'DetectRes'"},
      {{"yolov3_loss",
        {{"X", Numbers({1, 6, 2, 2}, 1)},
         {"GTBox", Of<float>({1, 1, 4}, {1, 0.5f, 0.5f, 0.5f})},
         {"GTLabel", Of<int32_t>({1, 1}, {0})}},
        {"Loss", "ObjectnessMask", "GTMatchMask"},
        yolo},
       "input 'GTBox' has a box with the centre 1, 0.5"},
      {{"psroi_pool",
        {{"X", Numbers({1, 5, 2, 2}, 1)}, {"ROIs", Numbers({1, 4}, 2, one)}},
        {"Out"},
        "output_channels=1, pooled_height=2, pooled_width=2"},
       "input 'X' has shape [1,5,2,2], expected 1 x 2 x 2 channels"},
  });
}

TEST(HeadErrorsTest, LabelsThatThereAreNoneOfAreRefused) {
  const Tensor x = Numbers({2, 3}, 1);
  const Tensor label = Of<int64_t>({2, 1}, {1, 3});
  ExpectRefusals({
      {{"nll_loss", {{"X", x}, {"Label", Of<int64_t>({2}, {-1, 0})}}, {"Out", "Total_weight"}},
       "'Label' has the value -1 at position 0, expected 0 to 2 or -100"},
      {{"bpr_loss", {{"X", x}, {"Label", label}}, {"Y"}},
       "'Label' has the value 3 at position 1, expected 0 to 2"},
      {{"hierarchical_sigmoid",
        {{"X", x}, {"W", Numbers({2, 3}, 2)}, {"Label", label}},
        {"Out", "PreOut"},
        "num_classes=3"},
       "'Label' has the value 3 at position 1"},
      {{"hierarchical_sigmoid",
        {{"X", x},
         {"W", Numbers({2, 3}, 2)},
         {"Label", label},
         {"PathTable", Of<int64_t>({2, 1}, {0, 2})},
         {"PathCode", Of<int64_t>({2, 1}, {0, 1})}},
        {"Out", "PreOut"}},
       "the way to the label of row 1 has node 2, expected 0 to 1"},
      {{"nce",
        {{"Input", x}, {"Label", label}, {"Weight", Numbers({3, 3}, 2)}},
        {"Cost"},
        "num_total_classes=3, seed=1"},
       "'Label' has the value 3 at position 1"},
  });
}

TEST(FusedErrorsTest, InputsThatDoNotFitAreRefused) {
  const Lod two = {{0, 1, 3}};
  const Tensor gates = Numbers({4, 6}, 2);
  ExpectRefusals({
      {{"fusion_gru",
        {{"X", Numbers({3, 5}, 1, two)}, {"WeightX", gates}, {"WeightH", Numbers({2, 6}, 3)}},
        {"Hidden"}},
       "input 'WeightX' has shape [4,6], expected [5,6]"},
      {{"fused_embedding_eltwise_layernorm",
        {{"Ids", Of<int64_t>({1, 2}, {0, 4})},
         {"Embs", Numbers({4, 3}, 1)},
         {"Bias", Numbers({3}, 2)},
         {"Scale", Numbers({3}, 3)}},
        {"Out"}},
       "'Ids' has the value 4 at position 1, expected 0 to 3"},
      {{"multihead_matmul",
        {{"Input", Numbers({1, 2, 4}, 1)},
         {"W", Numbers({4, 3, 2, 2}, 2)},
         {"Bias", Numbers({3, 2, 2}, 3)},
         {"BiasQK", Numbers({1, 2, 2, 3}, 4)}},
        {"Out"},
        "head_number=2"},
       "input 'BiasQK' has shape [1,2,2,3], expected [1,2,2,2]"},
      {{"partial_sum", {{"X", Numbers({2, 3}, 1)}}, {"Out"}, "start_index=1, length=3"},
       "start_index 1 and length 3 leave the 3 columns of input 'X'"},
  });
}

TEST(RowGradientTest, SelectedRowsAreThoseOfTheTensorThatWereUsed) {
  const std::string op =
      "  hierarchical_sigmoid_grad(X=x, W=w, Label=label, PreOut=pre, Out@GRAD=grad) -> (W@GRAD=";
  absl::StatusOr<Program> program = ParseProgram(
      absl::StrCat("block 0\n  var x float32[2,3]\n  var w float32[3,3]\n  var label int64[2,1]\n"
                   "  var pre float32[2,2]\n  var grad float32[2,1]\n  var dense float32[3,3]\n"
                   "  var rows selected_rows float32[3,3]\n  var values float32[-1,3]\n",
                   op, "dense) {num_classes=4}\n", op, "rows) {num_classes=4, is_sparse=true}\n",
                   "  get_tensor_from_selected_rows(X=rows) -> (Out=values)\n"));
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"x", "w", "label", "pre", "grad"},
                                      {"dense", "values"}, nullptr);
  ASSERT_THAT(core, IsOk());
  // Classes 0 and 1 lie below the nodes 0 and 1.
  const auto outputs =
      (*core)->Run({Numbers({2, 3}, 1), Numbers({3, 3}, 2), Of<int64_t>({2, 1}, {0, 1}),
                    Of<float>({2, 2}, {0.3f, 0.9f, 0.7f, 0.2f}), Numbers({2, 1}, 3)});
  ASSERT_THAT(outputs, IsOk());
  ASSERT_EQ((*outputs)[1].shape, (Shape{2, 3}));
  const float* const dense = (*outputs)[0].data<float>();
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(dense[i], i < 6 ? (*outputs)[1].data<float>()[i] : 0.0f) << i;
    EXPECT_EQ(dense[i] != 0, i < 6) << i;
  }
}

// Programs of Paddle name the weights as an output, too.
TEST(HierarchicalSigmoidTest, LeavesItsWeightsAsTheyAre) {
  absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var x float32[2,3]\n  var w float32[3,3]\n  var label int64[2,1]\n"
      "  var out float32[2,1]\n  var pre float32[2,2]\n  var again float32[2,1]\n"
      "  hierarchical_sigmoid(X=x, W=w, Label=label) -> (Out=out, PreOut=pre, W_Out=w)"
      " {num_classes=4}\n"
      "  hierarchical_sigmoid(X=x, W=w, Label=label) -> (Out=again, PreOut=pre) {num_classes=4}\n");
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"x", "w", "label"},
                                      {"out", "again", "w"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const Tensor weights = Numbers({3, 3}, 2);
  const auto outputs = (*core)->Run({Numbers({2, 3}, 1), weights, Of<int64_t>({2, 1}, {0, 3})});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ(Difference((*outputs)[1], (*outputs)[0], 0, 0), "");
  EXPECT_EQ(Difference((*outputs)[2], weights, 0, 0), "");
}

// Paddle's own kernel ignores the attribute.
TEST(FusionGruTest, KeepsTheOldStateInOriginMode) {
  const Lod lod = {{0, 3, 4, 8}};
  const std::string attrs = "origin_mode=true, is_reverse=true";
  const Tensor x = Numbers({8, 6}, 1, lod);
  const Tensor weight = Numbers({2, 6}, 2);
  const Tensor bias = Numbers({1, 6}, 3);
  std::vector<float> unit(36);
  for (int i = 0; i < 6; ++i) unit[i * 7] = 1;
  const std::vector<Tensor> plain =
      OutputsOf({"gru", {{"Input", x}, {"Weight", weight}, {"Bias", bias}}, {"Hidden"}, attrs});
  const std::vector<Tensor> fused = OutputsOf(
      {"fusion_gru",
       {{"X", x}, {"WeightX", Of<float>({6, 6}, unit)}, {"WeightH", weight}, {"Bias", bias}},
       {"Hidden"},
       attrs});
  EXPECT_EQ(Difference(fused[0], plain[0], 1e-5, 1e-6), "");
}

// Exports of PaddleHub have one.
// As in a head behind regions, which are the priors and belong to images.
TEST(BoxCoderTest, RowsOfPriorsHaveTheirSequences) {
  Tensor priors = Tensor::Of<float>({2, 4}, {0, 0, 1, 1, 0, 0, 2, 2});
  priors.lod = {{0, 1, 2}};
  const Tensor targets = Tensor::Of<float>({2, 1, 4}, std::vector<float>(8, 0));
  const absl::StatusOr<std::vector<Tensor>> results =
      RunOp({"box_coder",
             {{"PriorBox", priors}, {"TargetBox", targets}},
             {"OutputBox"},
             "code_type=\"decode_center_size\", axis=1"});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->front().lod, priors.lod);
}

TEST(MulticlassNmsTest, HasAnIndexAsItsSuccessorHas) {
  const auto run = [](const std::string& type, const std::string& threshold) {
    return OutputsOf(
        {type,
         {{"BBoxes", Of<float>({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3})},
          {"Scores", Of<float>({1, 2, 3}, {0, 0, 0, 0.5F, 0.75F, 0.25F})}},
         {"Out", "Index"},
         absl::StrCat("background_label=0, nms_top_k=-1, keep_top_k=-1, nms_threshold=0.5, "
                      "score_threshold=",
                      threshold)});
  };
  const std::vector<Tensor> found = run("multiclass_nms", "0.125");
  EXPECT_THAT(Values<float>(found[0]), ElementsAre(1, 0.75F, 0, 0, 1, 1, 1, 0.25F, 2, 2, 3, 3));
  EXPECT_THAT(Values<int32_t>(found[1]), ElementsAre(1, 2));
  EXPECT_EQ(found[1].lod, (Lod{{0, 2}}));
  for (const std::string threshold : {"0.125", "0.875"}) {
    const std::vector<Tensor> first = run("multiclass_nms", threshold);
    const std::vector<Tensor> second = run("multiclass_nms2", threshold);
    for (int i : {0, 1}) {
      EXPECT_EQ(first[i].shape, second[i].shape);
      EXPECT_EQ(Difference(first[i], second[i], 0, 0), "");
    }
  }
}

}  // namespace
}  // namespace interp::testing::detection_and_heads_test
