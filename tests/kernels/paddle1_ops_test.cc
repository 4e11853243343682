// Ops of Paddle 1 that Paddle 2.6 no longer has: by their definitions, gradients against
// differences, and inputs that are refused.
#include <cmath>
#include <limits>

#include "tests/kernels/finite_differences.h"

namespace interp::testing::paddle1_ops_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::Pointwise;

// 0, 1, 2 ...
template <typename T>
Tensor Counted(const Shape& shape) {
  std::vector<T> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<T>(i));
  return TensorOf<T>(shape, values);
}

TEST(ExpandAsTest, RepeatsTheWholeOfX) {
  const std::vector<Tensor> out =
      OutputsOf({"expand_as",
                 {{"X", TensorOf<int64_t>({2, 3, 1}, {1, 2, 3, 4, 5, 6})},
                  {"target_tensor", Numbers({2, 6, 2}, 1)}},
                 {"Out"}});
  EXPECT_EQ(out[0].shape, (Shape{2, 6, 2}));
  EXPECT_THAT(Values<int64_t>(out[0]),
              ElementsAre(1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 4, 4, 5, 5, 6, 6));
}

TEST(ExpandAsTest, GradientAgreesWithDifferences) {
  ExpectGradients(
      {{"expand_as",
        {{"X", Numbers<double>({2, 3, 1}, 1)}, {"target_tensor", Numbers<double>({4, 3, 2}, 2)}},
        {"Out"}},
       {"Out"},
       {"X"}});
}

TEST(ExpandAsTest, RefusesWhatIsNoMultiple) {
  const auto run = [](const Shape& target) {
    return OpRun{
        "expand_as", {{"X", Numbers({2, 3}, 1)}, {"target_tensor", Numbers(target, 2)}}, {"Out"}};
  };
  ExpectRefusals({{run({2, 4}), "'target_tensor' has shape [2,4]"},
                  {run({1, 3}), "'target_tensor' has shape [1,3]"},
                  {run({1, 2, 3}), "'target_tensor' has shape [1,2,3]"}});
}

TEST(CosSimTest, IsTheCosineOfRows) {
  const std::vector<Tensor> out =
      OutputsOf({"cos_sim",
                 {{"X", TensorOf<float>({2, 2}, {3, 4, 0, -2}, {{0, 2}})},
                  {"Y", TensorOf<float>({2, 2}, {4, 3, 1, 1})}},
                 {"Out", "XNorm", "YNorm"}});
  EXPECT_EQ(out[0].lod, (Lod{{0, 2}}));
  EXPECT_EQ(out[0].shape, (Shape{2, 1}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(FloatEq(24.0f / 25), FloatEq(-std::sqrt(0.5f))));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(5, 2));
  EXPECT_THAT(Values<float>(out[2]), ElementsAre(5, FloatEq(std::sqrt(2.0f))));
}

TEST(CosSimTest, OneRowOfYServesAllOfX) {
  const std::vector<Tensor> out = OutputsOf({"cos_sim",
                                             {{"X", TensorOf<float>({3, 2}, {3, 4, 0, -2, 6, 8})},
                                              {"Y", TensorOf<float>({1, 2}, {4, 3})}},
                                             {"Out", "XNorm", "YNorm"}});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(FloatEq(0.96f), FloatEq(-0.6f), FloatEq(0.96f)));
  EXPECT_EQ(out[2].shape, (Shape{1, 1}));
}

// Ops that compare rows of X and Y.
struct RowOp {
  const char* type;
  std::vector<std::string> outputs;
};
const RowOp kRowOps[] = {{"cos_sim", {"Out", "XNorm", "YNorm"}},
                         {"squared_l2_distance", {"sub_result", "Out"}}};

TEST(RowPairsTest, GradientsAgreeWithDifferences) {
  for (const RowOp& op : kRowOps) {
    for (const int64_t rows : {4, 1}) {
      ExpectGradients(
          {{op.type,
            {{"X", Numbers<double>({4, 2, 3}, 1)}, {"Y", Numbers<double>({rows, 2, 3}, 2)}},
            op.outputs},
           {"Out"},
           {"X", "Y"}});
    }
  }
}

TEST(RowPairsTest, RefuseRowsThatDoNotFit) {
  for (const RowOp& op : kRowOps) {
    const auto run = [&op](const Shape& x, const Shape& y) {
      return OpRun{op.type, {{"X", Numbers(x, 1)}, {"Y", Numbers(y, 2)}}, op.outputs};
    };
    ExpectRefusals({{run({3}, {3}), "'X' has shape [3]"},
                    {run({4, 3}, {2, 3}), "'Y' has shape [2,3]"},
                    {run({4, 3}, {4, 2}), "'Y' has shape [4,2]"},
                    {run({4, 3}, {4, 3, 1}), "'Y' has shape [4,3,1]"}});
  }
}

TEST(SquaredL2DistanceTest, GivesTheDifferenceAndItsSquares) {
  const std::vector<Tensor> out =
      OutputsOf({"squared_l2_distance",
                 {{"X", TensorOf<float>({2, 3}, {1, 2, 3, 4, 5, 6}, {{0, 2}})},
                  {"Y", TensorOf<float>({1, 3}, {1, 0, 1})}},
                 {"sub_result", "Out"}});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(0, 2, 2, 3, 5, 5));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(8, 59));
  EXPECT_EQ(out[1].lod, (Lod{{0, 2}}));
}

// The definition of Paddle, element by element.
std::vector<int64_t> Reorganised(const Shape& x, int64_t b) {
  const int64_t channels = x[1] / (b * b);
  std::vector<int64_t> out(static_cast<size_t>(x.numel()));
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t n = i / (x[1] * x[2] * x[3]);
    const int64_t k = i / (x[2] * x[3]) % x[1];
    const int64_t h = i / x[3] % x[2] * b + k / channels / b;
    const int64_t w = i % x[3] * b + k / channels % b;
    out[w + x[3] * b * (h + x[2] * b * (k % channels + channels * n))] = i;
  }
  return out;
}

TEST(SpaceToDepthTest, WritesBlocksIntoAWiderImage) {
  for (const auto& [shape, b] :
       {std::pair<Shape, int64_t>{{2, 8, 4, 6}, 2}, std::pair<Shape, int64_t>{{1, 9, 3, 3}, 3}}) {
    const std::vector<Tensor> out = OutputsOf({"space_to_depth",
                                               {{"X", Counted<int64_t>(shape)}},
                                               {"Out"},
                                               absl::StrCat("blocksize=", b)});
    EXPECT_EQ(out[0].shape, (Shape{shape[0], shape[1] * b * b, shape[2] / b, shape[3] / b}));
    EXPECT_EQ(Values<int64_t>(out[0]), Reorganised(shape, b));
  }
}

TEST(SpaceToDepthTest, GradientAgreesWithDifferences) {
  ExpectGradients(
      {{"space_to_depth", {{"X", Numbers<double>({1, 4, 2, 4}, 1)}}, {"Out"}, "blocksize=2"},
       {"Out"},
       {"X"}});
}

TEST(SpaceToDepthTest, RefusesImagesThatHaveNoBlocks) {
  const auto run = [](const Shape& x, const std::string& attrs) {
    return OpRun{"space_to_depth", {{"X", Numbers(x, 1)}}, {"Out"}, attrs};
  };
  ExpectRefusals({{run({1, 2, 2, 2}, "blocksize=2"), "C a multiple of 4"},
                  {run({1, 4, 3, 2}, "blocksize=2"), "multiples of 'blocksize' 2"},
                  {run({4, 2, 2}, "blocksize=2"), "expected [N,C,H,W]"},
                  {run({1, 4, 2, 2}, "blocksize=1"), "'blocksize' is 1"}});
}

// Class 0: one hit. Class 1: predicted twice for class 2. Class 3 does not occur.
OpRun MeanIouRun() {
  return {"mean_iou",
          {{"Predictions", TensorOf<int32_t>({4}, {0, 1, 1, 2})},
           {"Labels", TensorOf<int32_t>({4}, {0, 2, 2, 2})}},
          {"OutMeanIou", "OutWrong", "OutCorrect"},
          "num_classes=4"};
}

TEST(MeanIouTest, IsTheMeanOverClassesThatOccur) {
  const std::vector<Tensor> out = OutputsOf(MeanIouRun());
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(FloatEq((1.0f + 0.0f + 1.0f / 3) / 3)));
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(0, 2, 2, 0));
  EXPECT_THAT(Values<int32_t>(out[2]), ElementsAre(1, 0, 1, 0));
}

TEST(MeanIouTest, AddsEarlierBatches) {
  OpRun run = MeanIouRun();
  run.inputs[0].second = TensorOf<int64_t>({2, 2}, {0, 1, 1, 2});
  run.inputs[1].second = TensorOf<int64_t>({2, 2}, {0, 2, 2, 2});
  run.inputs.push_back({"InWrongs", TensorOf<int32_t>({4}, {1, 0, 0, 1})});
  run.inputs.push_back({"InWrongs", TensorOf<int32_t>({4}, {0, 0, 0, 1})});
  run.inputs.push_back({"InCorrects", TensorOf<int32_t>({4}, {0, 0, 2, 2})});
  run.inputs.push_back({"InMeanIou", TensorOf<float>({1}, {0.5f})});
  const std::vector<Tensor> out = OutputsOf(run);
  EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(Values<int32_t>(out[2]), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(FloatEq(0.5f + (0.5f + 0.6f + 0.5f) / 4)));
}

TEST(MeanIouTest, RefusesClassesOutsideAndCountsThatDoNotFit) {
  OpRun counts = MeanIouRun();
  counts.inputs.push_back({"InWrongs", TensorOf<int32_t>({3}, {1, 0, 0})});
  ExpectRefusals(
      {{With(MeanIouRun(), 0, TensorOf<int32_t>({4}, {0, 4, 1, 2})),
        "'Predictions' has the value 4"},
       {With(MeanIouRun(), 1, TensorOf<int32_t>({4}, {0, 1, 1, -1})), "'Labels' has the value -1"},
       {With(MeanIouRun(), 1, TensorOf<int32_t>({2}, {0, 1})), "'Labels' has shape [2]"},
       {counts, "'InWrongs' is int32[3], expected int32[4]"}});
}

template <typename T>
bool OneBool(const std::string& type, const std::vector<T>& values) {
  const Shape shape = {static_cast<int64_t>(values.size())};
  const std::vector<Tensor> out = OutputsOf({type, {{"X", TensorOf<T>(shape, values)}}, {"Out"}});
  EXPECT_EQ(out[0].shape, Shape{1});
  EXPECT_EQ(out[0].dtype, DType::kBool);
  return *out[0].data<bool>();
}

TEST(IsFiniteTest, AsksForAllElements) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(OneBool<float>("isfinite", {1, -2}));
  EXPECT_FALSE(OneBool<float>("isfinite", {1, -inf}));
  EXPECT_FALSE(OneBool<double>("isfinite", {std::nan(""), 1}));
  EXPECT_TRUE(OneBool<double>("isfinite", {1e300}));
  EXPECT_TRUE(OneBool<int32_t>("isfinite", {1}));
  EXPECT_TRUE(OneBool<int64_t>("isfinite", {1}));
}

TEST(IsFiniteTest, IntegersAreNeitherInfiniteNorNan) {
  for (const char* type : {"isinf", "isnan"}) {
    EXPECT_FALSE(OneBool<int32_t>(type, {std::numeric_limits<int32_t>::max()}));
    EXPECT_FALSE(OneBool<int64_t>(type, {std::numeric_limits<int64_t>::max()}));
  }
}

TEST(DiagTest, MakesAMatrix) {
  const std::vector<Tensor> out =
      OutputsOf({"diag", {{"Diagonal", TensorOf<int32_t>({3}, {7, 8, 9})}}, {"Out"}});
  EXPECT_EQ(out[0].shape, (Shape{3, 3}));
  EXPECT_THAT(Values<int32_t>(out[0]), ElementsAre(7, 0, 0, 0, 8, 0, 0, 0, 9));
  ExpectRefusals({{{"diag", {{"Diagonal", Numbers({3, 3}, 1)}}, {"Out"}}, "expected rank 1"}});
}

// In Paddle's numbering of dtypes 3 is int64, 5 float32.
TEST(FillTest, HasTheValuesOfItsAttribute) {
  const auto run = [](const std::string& attrs) { return OpRun{"fill", {}, {"Out"}, attrs}; };
  const std::vector<Tensor> out =
      OutputsOf(run("value=[1.5,2.0,3.0,4.0,5.0,6.0], shape=[3,2], dtype=5"));
  EXPECT_EQ(out[0].shape, (Shape{3, 2}));
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(1.5F, 2, 3, 4, 5, 6));
  EXPECT_THAT(Values<int64_t>(OutputsOf(run("value=[7.0,-8.0], shape=[2], dtype=3"))[0]),
              ElementsAre(7, -8));
  ExpectRefusals({{run("value=[1.0], shape=[2,2], dtype=5"), "'value' has 1 elements"},
                  {run("value=[1.0], shape=[-1], dtype=5"), "[-1]"}});
}

TEST(PadConstantLikeTest, PadsBehindTheEnds) {
  const std::vector<Tensor> out = OutputsOf(
      {"pad_constant_like",
       {{"X", Numbers({2, 2, 3}, 1, {{0, 2}})}, {"Y", TensorOf<int64_t>({1, 2, 2}, {5, 6, 7, 8})}},
       {"Out"},
       "pad_value=-1.0"});
  EXPECT_EQ(out[0].dtype, DType::kInt64);
  EXPECT_EQ(out[0].shape, (Shape{2, 2, 3}));
  EXPECT_THAT(Values<int64_t>(out[0]), ElementsAre(5, 6, -1, 7, 8, -1, -1, -1, -1, -1, -1, -1));
}

TEST(PadConstantLikeTest, GradientAgreesWithDifferences) {
  ExpectGradients({{"pad_constant_like",
                    {{"X", Numbers<double>({3, 4}, 1)}, {"Y", Numbers<double>({2, 3}, 2)}},
                    {"Out"}},
                   {"Out"},
                   {"Y"}});
}

TEST(PadConstantLikeTest, RefusesALargerY) {
  const auto run = [](const Shape& y) {
    return OpRun{"pad_constant_like", {{"X", Numbers({2, 3}, 1)}, {"Y", Numbers(y, 2)}}, {"Out"}};
  };
  ExpectRefusals({{run({2, 4}), "'Y' has shape [2,4]"}, {run({2}), "'Y' has shape [2]"}});
}

OpRun FocalRun(const Tensor& x, const std::vector<int32_t>& labels, int32_t fg_num) {
  return {"sigmoid_focal_loss",
          {{"X", x},
           {"Label", TensorOf<int32_t>({static_cast<int64_t>(labels.size()), 1}, labels)},
           {"FgNum", TensorOf<int32_t>({1}, {fg_num})}},
          {"Out"},
          "gamma=1.5, alpha=0.3"};
}

TEST(SigmoidFocalLossTest, IsItsFormula) {
  const Tensor x = TensorOf<float>({3, 2}, {0.5f, -1, 2, 100, -100, 3});
  const std::vector<Tensor> out = OutputsOf(FocalRun(x, {1, 0, -1}, 4));
  const auto positive = [](double x) {
    const double p = 1 / (1 + std::exp(-x));
    return FloatNear(static_cast<float>(-0.3 * std::pow(1 - p, 1.5) * std::log(p) / 4), 1e-6f);
  };
  const auto negative = [](double x) {
    const double p = 1 / (1 + std::exp(-x));
    return FloatNear(static_cast<float>(0.7 * std::pow(p, 1.5) * std::log1p(std::exp(x)) / 4),
                     1e-5f);
  };
  EXPECT_THAT(Values<float>(out[0]),
              ElementsAre(positive(0.5), negative(-1), negative(2), negative(100), 0, 0));
}

TEST(SigmoidFocalLossTest, NoForegroundCountsAsOne) {
  const Tensor x = Numbers({2, 3}, 1);
  EXPECT_THAT(Values<float>(OutputsOf(FocalRun(x, {1, 3}, 0))[0]),
              Pointwise(FloatEq(), Values<float>(OutputsOf(FocalRun(x, {1, 3}, 1))[0])));
}

TEST(SigmoidFocalLossTest, GradientAgreesWithDifferences) {
  ExpectGradients({FocalRun(Numbers<double>({4, 3}, 1), {2, 0, -1, 3}, 2), {"Out"}, {"X"}});
}

TEST(SigmoidFocalLossTest, RefusesLabelsThatDoNotFit) {
  const OpRun run = FocalRun(Numbers({2, 3}, 1), {1, 2}, 1);
  ExpectRefusals({{With(run, 0, Numbers({2, 3, 1}, 1)), "'X' has shape [2,3,1]"},
                  {With(run, 1, TensorOf<int32_t>({3, 1}, {1, 1, 1})), "'Label' has shape [3,1]"},
                  {With(run, 1, Numbers({2, 1}, 1)), "'Label' is float32"},
                  {With(run, 2, TensorOf<int32_t>({2}, {1, 1})), "'FgNum' has shape [2]"}});
}

// paddle.Tensor.fill_diagonal_tensor makes a row of a vector.
TEST(FillDiagonalTensorTest, TakesARow) {
  const OpRun run = {"fill_diagonal_tensor",
                     {{"X", Tensor::Of<float>({2, 3}, {0, 0, 0, 0, 0, 0})},
                      {"Y", Tensor::Of<float>({1, 2}, {5, 6})}},
                     {"Out"},
                     "offset=long:1"};
  EXPECT_THAT(Values<float>(OutputsOf(run)[0]), ElementsAre(0, 5, 0, 0, 0, 6));
}

// As Paddle has it: AnyLayout, which is the default, is no NCHW.
TEST(AffineChannelTest, ChannelsAreLastUnlessToldOtherwise) {
  const auto run = [](const std::string& attrs) {
    const OpRun run = {"affine_channel",
                       {{"X", Tensor::Of<float>({1, 2, 1, 2}, {1, 1, 1, 1})},
                        {"Scale", Tensor::Of<float>({2}, {2, 3})},
                        {"Bias", Tensor::Of<float>({2}, {0, 1})}},
                       {"Out"},
                       attrs};
    return Values<float>(OutputsOf(run)[0]);
  };
  EXPECT_THAT(run(""), ElementsAre(2, 4, 2, 4));
  EXPECT_THAT(run("data_layout=\"AnyLayout\""), ElementsAre(2, 4, 2, 4));
  EXPECT_THAT(run("data_layout=\"NHWC\""), ElementsAre(2, 4, 2, 4));
  EXPECT_THAT(run("data_layout=\"NCHW\""), ElementsAre(2, 2, 4, 4));
}

}  // namespace
}  // namespace interp::testing::paddle1_ops_test
