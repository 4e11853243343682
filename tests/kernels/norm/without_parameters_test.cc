// batch_norm without Scale, Bias or both, as layers with weight_attr=False or bias_attr=False make
// it.
#include "tests/kernels/op_runs.h"

namespace interp::testing::without_parameters_test {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

using Inputs = std::vector<std::pair<std::string, Tensor>>;

const Tensor kX = Tensor::Of<float>({2, 2, 1, 2}, {1, 2, 3, 5, -1, 0.5f, 2, 4});
const Tensor kScale = Tensor::Of<float>({2}, {1.5f, -2});
const Tensor kBias = Tensor::Of<float>({2}, {0.25f, 3});
const Tensor kOnes = Tensor::Of<float>({2}, {1, 1});
const Tensor kZeros = Tensor::Of<float>({2}, {0, 0});
const Tensor kMean = Tensor::Of<float>({2}, {0.5f, -0.5f});
const Tensor kVariance = Tensor::Of<float>({2}, {2, 0.5f});

// `inputs` between X and the statistics.
OpRun Norm(const Inputs& inputs, const std::string& attrs = "") {
  OpRun run = {"batch_norm",
               {{"X", kX}},
               {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"},
               "epsilon=1e-05, momentum=0.9" + attrs};
  run.inputs.insert(run.inputs.end(), inputs.begin(), inputs.end());
  run.inputs.emplace_back("Mean", kMean);
  run.inputs.emplace_back("Variance", kVariance);
  return run;
}

std::vector<float> ResultOf(const Inputs& inputs) {
  const Tensor y = OutputsOf(Norm(inputs))[0];
  return {y.data<float>(), y.data<float>() + y.numel()};
}

TEST(BatchNormTest, InTrainingIsThatOfPaddle) {
  EXPECT_THAT(ResultOf({{"Scale", kScale}}),
              Pointwise(FloatNear(1e-5f), {0.5196129f, 1.9052476f, 0.8944235f, -2.6832705f,
                                           -2.2516565f, -0.1732044f, 2.6832709f, -0.8944235f}));
  EXPECT_THAT(ResultOf({{"Bias", kBias}}),
              Pointwise(FloatNear(1e-5f), {0.5964087f, 1.5201652f, 2.5527883f, 4.3416352f,
                                           -1.2511043f, 0.1345304f, 1.6583645f, 3.4472117f}));
  EXPECT_THAT(ResultOf({}),
              Pointwise(FloatNear(1e-5f), {0.3464087f, 1.2701652f, -0.4472117f, 1.3416352f,
                                           -1.5011043f, -0.1154696f, -1.3416355f, 0.4472117f}));
}

// With a Scale of 1 and a Bias of 0 the results have the same bits.
TEST(BatchNormTest, TakesOnesAndZerosForWhatIsAbsent) {
  for (const std::string attrs : {"", ", is_test=true", ", use_global_stats=true"}) {
    for (const bool scale : {false, true}) {
      for (const bool bias : {false, true}) {
        Inputs given;
        if (scale) given.emplace_back("Scale", kScale);
        if (bias) given.emplace_back("Bias", kBias);
        const OpRun full =
            Norm({{"Scale", scale ? kScale : kOnes}, {"Bias", bias ? kBias : kZeros}}, attrs);
        EXPECT_TRUE(SameBits(OutputsOf(Norm(given, attrs)), OutputsOf(full)))
            << attrs << scale << bias;
      }
    }
  }
}

TEST(BatchNormTest, HasAGradientWithoutScale) {
  for (const std::string attrs : {"", ", use_global_stats=true"}) {
    const std::vector<Tensor> forward = OutputsOf(Norm({}, attrs));
    OpRun run = {"batch_norm_grad",
                 {{"X", kX},
                  {"MeanOut", kMean},
                  {"VarianceOut", kVariance},
                  {"SavedMean", forward[3]},
                  {"SavedVariance", forward[4]},
                  {"Y@GRAD", Numbers({2, 2, 1, 2}, 3)}},
                 {"X@GRAD", "Bias@GRAD"},
                 "epsilon=1e-05" + attrs};
    OpRun full = run;
    full.inputs.insert(full.inputs.begin() + 1, {"Scale", kOnes});
    EXPECT_TRUE(SameBits(OutputsOf(run), OutputsOf(full))) << attrs;
  }
}

TEST(BatchNormTest, ParametersThatDoNotFitAreRefused) {
  ExpectRefusals({{Norm({{"Scale", Numbers({3}, 1)}}), "input 'Scale' is float32[3]"},
                  {Norm({{"Bias", Numbers({3}, 1)}}), "input 'Bias' is float32[3]"}});
}

}  // namespace
}  // namespace interp::testing::without_parameters_test
