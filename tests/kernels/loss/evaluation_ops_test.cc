// Losses, metrics and other ops of evaluation programs: what the golden cases cannot hold, and
// inputs that are refused.
#include <cmath>

#include "core/float16.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing::evaluation_ops_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

Tensor Floats(const Shape& shape, float value = 0.5f) {
  return TensorOf<float>(shape, std::vector<float>(static_cast<size_t>(shape.numel()), value));
}
Tensor Ints(const Shape& shape, int64_t value = 0) {
  return TensorOf<int64_t>(shape, std::vector<int64_t>(static_cast<size_t>(shape.numel()), value));
}

TEST(EvaluationOpsTest, MarginRankLossActivatesWhatIsWithinTheMargin) {
  const std::vector<Tensor> out = OutputsOf({"margin_rank_loss",
                                             {{"Label", TensorOf<float>({3, 1}, {1, 1, -1})},
                                              {"X1", TensorOf<float>({3, 1}, {2, 0, 3})},
                                              {"X2", TensorOf<float>({3, 1}, {1, 1, 1})}},
                                             {"Out", "Activated"},
                                             "margin=0.5"});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(0.0f, 1.5f, 2.5f));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(0.0f, 1.0f, 1.0f));
}

// d = 0.25, 2 with sigma 2: 0.25 lies at the bound 1 / sigma^2, beyond the square.
TEST(EvaluationOpsTest, SmoothL1LossIsASquareBelowTheBound) {
  const OpRun run = {"smooth_l1_loss",
                     {{"X", TensorOf<float>({2, 2}, {1.25f, 3, 0.125f, -1})},
                      {"Y", TensorOf<float>({2, 2}, {1, 1, 0, 0})}},
                     {"Out", "Diff"},
                     "sigma=2.0"};
  const std::vector<Tensor> out = OutputsOf(run);
  EXPECT_EQ(out[0].shape, (Shape{2, 1}));
  EXPECT_THAT(Values<float>(out[0]),
              ElementsAre(FloatEq(0.125f + 1.875f), FloatEq(0.03125f + 0.875f)));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(0.25f, 2.0f, 0.125f, -1.0f));
}

TEST(EvaluationOpsTest, SmoothL1LossWeighsInsideAndOutside) {
  const std::vector<Tensor> out = OutputsOf({"smooth_l1_loss",
                                             {{"X", TensorOf<float>({1, 2}, {3, 3})},
                                              {"Y", TensorOf<float>({1, 2}, {1, 1})},
                                              {"InsideWeight", TensorOf<float>({1, 2}, {0.25f, 0})},
                                              {"OutsideWeight", TensorOf<float>({1, 2}, {4, 1})}},
                                             {"Out", "Diff"},
                                             "sigma=1.0"});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(0.5f));
}

TEST(EvaluationOpsTest, EmptyGivesZerosOfAnyShape) {
  const std::vector<Tensor> out =
      OutputsOf({"empty", {{"ShapeTensor", TensorOf<int64_t>({2}, {2, 1})}}, {"Out"}, "dtype=3"});
  EXPECT_EQ(out[0].shape, (Shape{2, 1}));
  EXPECT_THAT(Values<int64_t>(out[0]), ElementsAre(0, 0));
}

TEST(EvaluationOpsTest, EmptyRefusesNegativeSizes) {
  ExpectRefusals({{{"empty", {{"ShapeTensor", TensorOf<int64_t>({1}, {-2})}}, {"Out"}, ""}, "-2"}});
}

TEST(EvaluationOpsTest, Bfloat16IsDequantizedAndRescaled) {
  const Tensor x = TensorOf<bfloat16>({2}, {bfloat16(3.0f), bfloat16(-1.0f)});
  const std::vector<Tensor> floats =
      OutputsOf({"dequantize", {{"Input", x}}, {"Output"}, "Scale=2.0"});
  EXPECT_THAT(Values<float>(floats[0]), ElementsAre(1.5f, -0.5f));
  const std::vector<Tensor> rescaled =
      OutputsOf({"requantize", {{"Input", x}}, {"Output"}, "Scale_in=2.0, Scale_out=4.0"});
  EXPECT_EQ(static_cast<float>(rescaled[0].data<bfloat16>()[0]), 6.0f);
}

// What ops without a row for bfloat16 make of it is float32.
TEST(EvaluationOpsTest, DequantizeOfBfloat16TakesFloat32) {
  const Tensor x = TensorOf<float>({2}, {3.0f, -1.0f});
  const std::vector<Tensor> out =
      OutputsOf({"dequantize", {{"Input", x}}, {"Output"}, "Scale=1.0, bfloat16=true"});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(3.0f, -1.0f));
}

TEST(EvaluationOpsTest, FilterByInstagKeepsSequencesWithAWantedTag) {
  const Lod two_one = {{0, 2, 3}};
  const OpRun run = {"filter_by_instag",
                     {{"Ins", TensorOf<float>({3, 2}, {1, 2, 3, 4, 5, 6}, two_one)},
                      {"Ins_tag", TensorOf<int64_t>({3, 1}, {7, 8, 9}, two_one)},
                      {"Filter_tag", TensorOf<int64_t>({1}, {9})}},
                     {"Out", "LossWeight", "IndexMap"},
                     "is_lod=true"};
  const std::vector<Tensor> out = OutputsOf(run);
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(5, 6));
  EXPECT_EQ(out[0].lod, (Lod{{0, 1}}));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(1));
  EXPECT_THAT(Values<int64_t>(out[2]), ElementsAre(0, 2, 1));
  const std::vector<Tensor> none = OutputsOf(With(run, 2, TensorOf<int64_t>({1}, {1})));
  EXPECT_THAT(Values<float>(none[0]), ElementsAre(0, 0));
  EXPECT_THAT(Values<float>(none[1]), ElementsAre(0));
}

TEST(EvaluationOpsTest, FilterByInstagRefusesTagsThatDoNotFit) {
  const OpRun run = {"filter_by_instag",
                     {{"Ins", Floats({3, 2})},
                      {"Ins_tag", TensorOf<int64_t>({3, 1}, {7, 8, 9}, {{0, 1, 3}})},
                      {"Filter_tag", Ints({1})}},
                     {"Out", "LossWeight", "IndexMap"},
                     "is_lod=false"};
  ExpectRefusals({{run, "3 and 2 sequences"},
                  {With(run, 0, Floats({3})), "expected rank 2"},
                  {With(run, 1, Ints({3, 2})), "rows of one tag"},
                  {With(run, 1, Ints({3, 1})), "without LoD"},
                  {With(run, 2, Floats({1})), "expected int64"}});
}

TEST(EvaluationOpsTest, LossesRefuseShapesThatDiffer) {
  const Tensor x = Floats({2, 1});
  const Tensor y = Floats({3, 1});
  ExpectRefusals({
      {{"bce_loss", {{"X", x}, {"Label", y}}, {"Out"}, ""}, "expected that of 'X', [2,1]"},
      {{"bce_loss", {{"X", Floats({2}, 1.5f)}, {"Label", Floats({2})}}, {"Out"}, ""}, "[0, 1]"},
      {{"bce_loss", {{"X", Floats({2}, NAN)}, {"Label", Floats({2})}}, {"Out"}, ""}, "[0, 1]"},
      {{"log_loss", {{"Predicted", x}, {"Labels", y}}, {"Loss"}, ""}, "'Predicted', [2,1]"},
      {{"log_loss", {{"Predicted", Floats({2})}, {"Labels", Floats({2})}}, {"Loss"}, ""}, "[n,1]"},
      {{"hinge_loss", {{"Logits", x}, {"Labels", y}}, {"Loss"}, ""}, "'Logits', [2,1]"},
      {{"huber_loss", {{"X", x}, {"Y", y}}, {"Out"}, ""}, "'Y' has shape [3,1]"},
      {{"rank_loss", {{"Label", x}, {"Left", x}, {"Right", y}}, {"Out"}, ""}, "'Right'"},
      {{"kldiv_loss", {{"X", x}, {"Target", y}}, {"Loss"}, ""}, "'Target' has shape [3,1]"},
      {{"kldiv_loss", {{"X", x}, {"Target", x}}, {"Loss"}, R"(reduction="most")"}, "is 'most'"},
      {{"smooth_l1_loss", {{"X", x}, {"Y", y}}, {"Out", "Diff"}, ""}, "'Y' has shape [3,1]"},
      {{"smooth_l1_loss", {{"X", x}, {"Y", x}, {"InsideWeight", x}}, {"Out", "Diff"}, ""},
       "together"},
      {{"sigmoid_cross_entropy_with_logits", {{"X", x}, {"Label", y}}, {"Out"}, ""}, "'Label'"},
  });
}

TEST(EvaluationOpsTest, CrossEntropyRefusesLabelsOutsideOfTheClasses) {
  const Tensor x = Floats({2, 3});
  const std::string range = "expected 0 to 2 or the ignored -100";
  for (const int64_t label : {int64_t{3}, int64_t{-1}, int64_t{1} << 40}) {
    const Tensor labels = Ints({2, 1}, label);
    ExpectRefusals({
        {{"cross_entropy", {{"X", x}, {"Label", labels}}, {"Y"}, ""}, range},
        {{"cross_entropy2", {{"X", x}, {"Label", labels}}, {"Y", "MatchX"}, ""}, range},
        {{"softmax_with_cross_entropy",
          {{"Logits", x}, {"Label", labels}},
          {"Softmax", "Loss"},
          ""},
         range},
    });
  }
  // What is no whole number is no label to ignore either.
  for (const float label : {NAN, 3e9F, -INFINITY}) {
    const Tensor labels = TensorOf<float>({2, 1}, {1, label});
    const OpRun run = {"cross_entropy", {{"X", x}, {"Label", labels}}, {"Y"}, "ignore_index=-1"};
    ExpectRefusals({{run, "expected 0 to 2 or the ignored -1"}});
  }
}

TEST(EvaluationOpsTest, CrossEntropyRefusesLabelsThatDoNotFit) {
  const Tensor x = Floats({2, 3});
  const OpRun hard = {"softmax_with_cross_entropy",
                      {{"Logits", x}, {"Label", Ints({2, 3})}},
                      {"Softmax", "Loss"},
                      ""};
  OpRun soft = With(hard, 1, Ints({2, 3}));
  soft.attrs = "soft_label=true";
  OpRun axis = hard;
  axis.attrs = "axis=2";
  ExpectRefusals({
      {hard, "expected [2,1]"},
      {soft, "'Label' is int64[2,3], expected float32"},
      {axis, "'axis' is 2"},
      {{"cross_entropy", {{"X", x}, {"Label", Ints({3, 1})}}, {"Y"}, ""}, "[2,3]"},
      {{"cross_entropy", {{"X", x}, {"Label", Ints({2, 1})}}, {"Y"}, "soft_label=true"},
       "expected that shape"},
      {{"cross_entropy", {{"X", Floats({})}, {"Label", Ints({})}}, {"Y"}, ""}, "'Label'"},
  });
}

TEST(EvaluationOpsTest, AccuracyRefusesInputsThatDoNotFit) {
  const OpRun run = {"accuracy",
                     {{"Out", Floats({3, 2})}, {"Indices", Ints({3, 2})}, {"Label", Ints({3, 1})}},
                     {"Accuracy", "Correct", "Total"},
                     ""};
  ExpectRefusals({
      {With(run, 0, Floats({3})), "[samples,k]"},
      {With(run, 1, Ints({3, 1})), "'Indices' has shape [3,1]"},
      {With(run, 2, Ints({2, 1})), "3 labels"},
      {With(run, 2, Ints({3, 1}, -1)), "the value -1"},
      {With(run, 2, Floats({3, 1})), "expected int32 or int64"},
  });
}

TEST(EvaluationOpsTest, AccuracyOfNoSamplesIsZero) {
  const std::vector<Tensor> out =
      OutputsOf({"accuracy",
                 {{"Out", Floats({0, 2})}, {"Indices", Ints({0, 2})}, {"Label", Ints({0, 1})}},
                 {"Accuracy", "Correct", "Total"},
                 ""});
  EXPECT_EQ(*out[0].data<float>(), 0.0f);
  EXPECT_EQ(*out[2].data<int32_t>(), 0);
}

TEST(EvaluationOpsTest, AucRefusesInputsThatDoNotFit) {
  OpRun run = {"auc",
               {{"Predict", Floats({3, 2})},
                {"Label", Ints({3, 1})},
                {"StatPos", Ints({1, 4})},
                {"StatNeg", Ints({1, 4})}},
               {"AUC", "StatPosOut", "StatNegOut"},
               "num_thresholds=3, slide_steps=0"};
  ExpectRefusals({
      {With(run, 0, Floats({3})), "[samples,classes]"},
      {With(run, 0, Floats({3, 0})), "[samples,classes]"},
      {With(run, 0, Floats({3, 2}, 1.5f)), "score 1.5"},
      {With(run, 0, Floats({3, 2}, NAN)), "expected 0 to 1"},
      {With(run, 1, Ints({2, 1})), "3 labels"},
      {With(run, 1, Floats({3, 1})), "labels of int64"},
      {With(run, 2, Ints({1, 3})), "expected 4 elements"},
      {With(run, 3, Floats({1, 4})), "expected 4 elements of int64"},
  });
  run.attrs = "num_thresholds=0, slide_steps=0";
  ExpectRefusals({{run, "below 1"}});
  run.attrs = "num_thresholds=2147483647, slide_steps=2147483647";
  ExpectRefusals({{run, "elements of int64"}});
  run.attrs = "num_thresholds=1, slide_steps=1";
  run.inputs[2].second = run.inputs[3].second = Ints({5}, -3);
  ExpectRefusals({{run, "a number of runs"}});
}

TEST(EvaluationOpsTest, ChunkEvalRefusesInputsThatDoNotFit) {
  const Lod lod = {{0, 2}};
  const Tensor tagged = TensorOf<int64_t>({2, 1}, {0, 1}, lod);
  const OpRun run = {
      "chunk_eval",
      {{"Inference", tagged}, {"Label", tagged}},
      {"Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"},
      R"(num_chunk_types=2, chunk_scheme="IOB")"};
  OpRun padded = run;
  padded.inputs = {{"Inference", Ints({1, 2})}, {"Label", Ints({1, 2})}, {"SeqLength", Ints({1})}};
  OpRun scheme = run;
  scheme.attrs = R"(num_chunk_types=2, chunk_scheme="BIO")";
  ExpectRefusals({
      {With(run, 1, Ints({2, 1})), "there is no 'SeqLength'"},
      {With(run, 0, TensorOf<int64_t>({2, 1}, {0, 1}, {{0, 1, 2}})), "differ in LoD"},
      {With(run, 0, TensorOf<int64_t>({2, 1}, {0, 9}, lod)), "a label is 9, expected 0 to 4"},
      {With(run, 0, TensorOf<int64_t>({2, 1}, {0, -1}, lod)), "a label is -1"},
      {With(padded, 2, Ints({1}, 3)), "'SeqLength' has the value 3"},
      {With(padded, 2, Ints({1}, -1)), "'SeqLength' has the value -1"},
      {With(padded, 2, Ints({2})), "do not fit"},
      {With(padded, 0, Ints({1, 3})), "do not fit"},
      {scheme, "'BIO'"},
  });
}

TEST(EvaluationOpsTest, PrecisionRecallRefusesClassesItDoesNotHave) {
  const auto classes = [](int32_t value) { return TensorOf<int32_t>({1, 1}, {value}); };
  const OpRun run = {"precision_recall",
                     {{"MaxProbs", Floats({1, 1})},
                      {"Indices", classes(0)},
                      {"Labels", classes(1)},
                      {"StatesInfo", Floats({2, 4})}},
                     {"BatchMetrics", "AccumMetrics", "AccumStatesInfo"},
                     "class_number=2"};
  ExpectRefusals({
      {With(run, 1, classes(2)), "expected 0 to 1"},
      {With(run, 2, classes(-1)), "'Labels' has the value -1"},
      {With(run, 1, Ints({1, 1})), "expected int32[1,1]"},
      {With(run, 0, Floats({1})), "[samples,1]"},
      {With(run, 3, Floats({3, 4})), "expected float32[2,4]"},
  });
}

// One class, which every sample hits: true positives alone.
TEST(EvaluationOpsTest, PrecisionRecallUpdatesItsStatesInPlace) {
  absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var probs float32[2,1]
  var classes int32[2,1]
  var states float32[1,4]
  precision_recall(MaxProbs=probs, Indices=classes, Labels=classes, StatesInfo=states) -> (BatchMetrics=batch, AccumMetrics=all, AccumStatesInfo=states) {class_number=1}
)");
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"probs", "classes", "states"},
                                      {"states"}, nullptr, {});
  ASSERT_THAT(core, IsOk());
  const absl::StatusOr<std::vector<Tensor>> out = (*core)->Run(
      {Floats({2, 1}), TensorOf<int32_t>({2, 1}, {0, 0}), TensorOf<float>({1, 4}, {5, 1, 0, 3})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>(out->at(0)), ElementsAre(7, 1, 0, 3));
}

TEST(EvaluationOpsTest, RecommendationOpsRefuseInputsThatDoNotFit) {
  OpRun norm = {"data_norm",
                {{"X", Floats({2, 4})},
                 {"BatchSize", Floats({4})},
                 {"BatchSum", Floats({4})},
                 {"BatchSquareSum", Floats({4})}},
                {"Y", "Means", "Scales"},
                ""};
  ExpectRefusals({
      {With(norm, 0, Floats({4})), "expected rank 2"},
      {With(norm, 1, Floats({3})), "'BatchSize' has shape [3], expected [4]"},
      {{"cvm", {{"X", Floats({2, 1})}, {"CVM", Floats({2, 2})}}, {"Y"}, ""}, "2 or more"},
  });
  norm.attrs = "slot_dim=3";
  ExpectRefusals({{norm, "no multiple of 'slot_dim' 3"}});
  norm.attrs = "enable_scale_and_shift=true";
  ExpectRefusals({{norm, "needs inputs"}});
}

TEST(EvaluationOpsTest, GenerateProposalsNeedsTheScaleOfEachImage) {
  ExpectRefusals({{{"generate_proposals",
                    {{"Scores", Floats({1, 1, 1, 1})},
                     {"BboxDeltas", Floats({1, 4, 1, 1})},
                     {"ImInfo", Floats({1, 2})},
                     {"Anchors", Floats({1, 1, 1, 4})},
                     {"Variances", Floats({1, 1, 1, 4})}},
                    {"RpnRois", "RpnRoiProbs"},
                    ""},
                   "'ImInfo' has shape [1,2], expected [1,3]"}});
}

TEST(EvaluationOpsTest, InverseRefusesWhatHasNone) {
  ExpectRefusals({
      {{"inverse", {{"Input", Floats({2, 2, 2})}}, {"Output"}, ""}, "matrix 0 of input 'Input'"},
      {{"inverse", {{"Input", Floats({2, 3})}}, {"Output"}, ""}, "square matrices"},
      {{"inverse", {{"Input", Floats({1, 1}, NAN)}}, {"Output"}, ""}, "no inverse"},
  });
}

TEST(EvaluationOpsTest, InverseOfNoMatricesIsEmpty) {
  EXPECT_EQ(OutputsOf({"inverse", {{"Input", Floats({0, 3, 3})}}, {"Output"}, ""})[0].shape,
            (Shape{0, 3, 3}));
  EXPECT_EQ(OutputsOf({"inverse", {{"Input", Floats({2, 0, 0})}}, {"Output"}, ""})[0].shape,
            (Shape{2, 0, 0}));
}

TEST(EvaluationOpsTest, QuantizeRefusesScalesAndShiftsOutOfRange) {
  const Tensor x = Floats({2});
  const Tensor bytes = TensorOf<int8_t>({2}, {1, 2});
  ExpectRefusals({
      {{"quantize", {{"Input", x}}, {"Output"}, "Scale=0.0"}, "'Scale' is 0"},
      {{"quantize", {{"Input", x}}, {"Output"}, "Shift=256.0"}, "'Shift' is 256"},
      {{"dequantize", {{"Input", bytes}}, {"Output"}, "Scale=0.0"}, "'Scale' is 0"},
      {{"requantize", {{"Input", bytes}}, {"Output"}, "Scale_in=0.0"}, "'Scale_in' is 0"},
      {{"requantize", {{"Input", bytes}}, {"Output"}, "Shift_in=2.0"}, "expected uint8"},
  });
}

TEST(EvaluationOpsTest, SetValueRefusesPartsAndValuesThatDoNotFit) {
  OpRun run = {"set_value",
               {{"Input", Floats({4, 3})}, {"ValueTensor", Floats({2, 3})}},
               {"Out"},
               "axes=[0], starts=[1], ends=[3], steps=[1]"};
  ExpectRefusals({
      {With(run, 1, Floats({3, 3})), "does not fit the part [2,3]"},
      {With(run, 1, Floats({2, 2, 3})), "does not fit the part [2,3]"},
      {With(run, 0, Floats({})), "rank 0"},
  });
  const std::vector<std::pair<std::string, std::string>> attrs = {
      {"axes=[2], starts=[1], ends=[3], steps=[1]", "'axes' is 2"},
      {"axes=[0, 0], starts=[1, 1], ends=[3, 3], steps=[1, 1]", "lists 0 twice"},
      {"axes=[0], starts=[1], ends=[3], steps=[0]", "'steps' has a 0"},
      {"axes=[0], starts=[3], ends=[1], steps=[1]", "is no part"},
      {"axes=[0], starts=[1, 2], ends=[3], steps=[1]", "'starts' has 2 values"},
      {"axes=[0], starts=[1], ends=[3], steps=[1], decrease_axes=[0]", "drops dimension 0"},
      {"axes=[0], starts=[1], ends=[3], steps=[1], none_axes=[0,0,0,0,0,0,0,0]", "has rank 10"},
  };
  for (const auto& [text, message] : attrs) {
    run.attrs = text;
    ExpectRefusals({{run, message}});
  }
  run.inputs.pop_back();
  run.attrs = "axes=[0], starts=[1], ends=[3], steps=[1]";
  ExpectRefusals({{run, "no 'ValueTensor'"}});
  run.attrs += ", fp32_values=[1.0, 2.0], shape=[3]";
  ExpectRefusals({{run, "list 2 values for shape [3]"}});
}

TEST(EvaluationOpsTest, SetValueTakesTheListsOfOlderPrograms) {
  OpRun run = {"set_value", {{"Input", Floats({2, 2})}}, {"Out"}, ""};
  for (const std::string values : {"fp32_values=[7.0]", "fp64_values=[7.0]", "int32_values=[7]"}) {
    run.attrs = absl::StrCat(
        "axes=[1], starts=[-1], ends=longs:[9223372036854775807], "
        "steps=longs:[9223372036854775807], shape=[1], ",
        values);
    EXPECT_THAT(Values<float>(OutputsOf(run)[0]), ElementsAre(0.5f, 7.0f, 0.5f, 7.0f));
  }
  run.attrs =
      "axes=[1], starts=[1], ends=longs:[-9223372036854775808], "
      "steps=longs:[-9223372036854775808], shape=[1], fp32_values=[7.0]";
  EXPECT_THAT(Values<float>(OutputsOf(run)[0]), ElementsAre(0.5f, 7.0f, 0.5f, 7.0f));
}

}  // namespace
}  // namespace interp::testing::evaluation_ops_test
