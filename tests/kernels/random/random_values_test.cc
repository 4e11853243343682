// Numbers of distributions whose parameters are inputs: their means, and what is no parameter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::Each;
using ::testing::Ge;

constexpr int64_t kCount = 20000;

Tensor Filled(const Shape& shape, float value) {
  return Tensor::Of<float>(shape, std::vector<float>(shape.numel(), value));
}

std::vector<float> Draw(const char* type, const Tensor& x, const char* attrs) {
  const char* const slot = std::string(type) == "dirichlet" ? "Alpha" : "X";
  return Values<float>(OutputsOf({type, {{slot, x}}, {"Out"}, attrs})[0]);
}

double MeanOf(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(RandomValuesTest, ExponentialNumbersHaveTheirMean) {
  const std::vector<float> values = Draw("exponential", Filled({kCount}, 0), "lambda=4.0");
  EXPECT_THAT(values, Each(Ge(0)));
  EXPECT_NEAR(MeanOf(values), 0.25, 0.01);
}

TEST(RandomValuesTest, PoissonNumbersHaveTheMeanOfX) {
  for (const float mean : {0.0f, 0.5f, 30.0f}) {
    EXPECT_NEAR(MeanOf(Draw("poisson", Filled({kCount}, mean), "")), mean, 0.02 + 0.01 * mean);
  }
}

TEST(RandomValuesTest, DirichletPointsSumToOne) {
  const std::vector<float> values = Draw("dirichlet", Filled({kCount / 4, 4}, 2), "");
  for (size_t i = 0; i < values.size(); i += 4) {
    EXPECT_NEAR(values[i] + values[i + 1] + values[i + 2] + values[i + 3], 1, 1e-5);
  }
}

TEST(RandomValuesTest, UniformNumbersLieBetweenTheBounds) {
  const std::vector<float> values =
      Draw("uniform_random_inplace", Filled({kCount}, 0), "min=2.0, max=4.0");
  EXPECT_THAT(values, Each(::testing::AllOf(Ge(2), ::testing::Le(4))));
  EXPECT_NEAR(MeanOf(values), 3, 0.03);
}

TEST(RandomValuesTest, HardGumbelSoftmaxChoosesByProbability) {
  const std::vector<float> values =
      Draw("gumbel_softmax", Filled({kCount, 2}, 0), "hard=true, temperature=0.5, axis=-1");
  double first = 0;
  for (size_t i = 0; i < values.size(); i += 2) {
    EXPECT_EQ(values[i] + values[i + 1], 1);
    first += values[i];
  }
  EXPECT_NEAR(first / kCount, 0.5, 0.02);
}

TEST(RandomValuesTest, NegativeInputsOfRreluGetASlopeOfTheirOwn) {
  const auto out =
      OutputsOf({"rrelu", {{"X", Filled({kCount}, -1)}}, {"Out", "Noise"}, "lower=0.1, upper=0.3"});
  EXPECT_THAT(Values<float>(out[1]), Each(::testing::AllOf(Ge(0.1f), ::testing::Le(0.3f))));
  EXPECT_NEAR(MeanOf(Values<float>(out[0])), -0.2, 0.01);
}

// As Paddle saves programs for inference, which it does not run itself.
TEST(RandomValuesTest, RreluGoesWithoutNoise) {
  const auto out = OutputsOf({"rrelu",
                              {{"X", Tensor::Of<float>({2}, {-4, 3})}},
                              {"Out"},
                              "lower=0.125, upper=0.375, is_test=true"});
  EXPECT_THAT(Values<float>(out[0]), ::testing::ElementsAre(-1, 3));
}

TEST(RandomValuesTest, WhatIsNoParameterIsRefused) {
  ExpectRefusals({
      {{"poisson", {{"X", Filled({2}, -1)}}, {"Out"}, ""}, "element 0 of 'X' is -1"},
      {{"dirichlet", {{"Alpha", Filled({2}, 0)}}, {"Out"}, ""}, "expected above 0"},
      {{"exponential", {{"X", Filled({2}, 0)}}, {"Out"}, "lambda=0.0"}, "'lambda' is 0"},
      {{"rrelu", {{"X", Filled({2}, 0)}}, {"Out", "Noise"}, "lower=0.5, upper=0.1"},
       "expected 0 <= lower"},
      {{"gumbel_softmax", {{"X", Filled({2}, 0)}}, {"Out"}, "temperature=0.0"}, "'temperature'"},
  });
}

}  // namespace
}  // namespace interp::testing
