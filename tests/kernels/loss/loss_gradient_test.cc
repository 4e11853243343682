// Gradients of kernels/loss against differences.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/finite_differences.h"

namespace interp::testing {
namespace {

// Rows of positive numbers along the last dimension that add up to 1.
Tensor Probabilities(const Shape& shape, uint32_t seed) {
  Tensor tensor = Numbers<double>(shape, seed);
  const int64_t width = shape.back();
  for (int64_t row = 0; row < tensor.numel(); row += width) {
    double* values = tensor.mutable_data<double>() + row;
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += values[i] = values[i] / 3 + 0.5;
    for (int64_t i = 0; i < width; ++i) values[i] /= sum;
  }
  return tensor;
}

// Labels from 0 to below `limit`.
Tensor Labels(const Shape& shape, int64_t limit) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(i * i % limit);
  return Tensor::Of<int64_t>(shape, values);
}

// 0 and 1 in turn.
Tensor Bits(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<double>(i % 2));
  return Tensor::Of<double>(shape, values);
}

TEST(CrossEntropyGradientTest, AgreesWithDifferences) {
  const Tensor x = Probabilities({5, 4}, 1);
  const auto check = [](const Tensor& x, const Tensor& label, const std::string& attrs) {
    ExpectGradients({{"cross_entropy", {{"X", x}, {"Label", label}}, {"Y"}, attrs}, {"Y"}, {"X"}});
  };
  check(x, Labels({5, 1}, 4), "");
  check(x, Labels({5}, 4), "ignore_index=1");
  check(x, Probabilities({5, 4}, 2), "soft_label=true");
  check(Probabilities({2, 3, 4}, 1), Labels({2, 3, 1}, 4), "");
  ExpectGradients({{"cross_entropy2",
                    {{"X", x}, {"Label", Labels({5, 1}, 4)}},
                    {"Y", "XShape", "MatchX"},
                    "ignore_index=1"},
                   {"Y"},
                   {"X"}});
}

TEST(SoftmaxWithCrossEntropyGradientTest, AgreesWithDifferences) {
  const auto check = [](const Tensor& logits, const Tensor& label, const std::string& attrs) {
    ExpectGradients({{"softmax_with_cross_entropy",
                      {{"Logits", logits}, {"Label", label}},
                      {"Softmax", "Loss"},
                      attrs},
                     {"Loss"},
                     {"Logits"}});
  };
  const Tensor logits = Numbers<double>({5, 7}, 1);
  const Tensor columns = Numbers<double>({2, 5, 3}, 1);
  check(logits, Labels({5, 1}, 7), "");
  check(logits, Labels({5, 1}, 7), "ignore_index=1");
  check(columns, Labels({2, 1, 3}, 5), "axis=1");
  check(logits, Probabilities({5, 7}, 2), "soft_label=true");
  check(Probabilities({5, 7}, 1), Labels({5, 1}, 7), "use_softmax=false");
  check(Probabilities({5, 7}, 1), Probabilities({5, 7}, 2), "use_softmax=false, soft_label=true");
  check(Numbers<double>({0, 7}, 1), Labels({0, 1}, 7), "");
}

TEST(SoftmaxWithCrossEntropyGradientTest, LargeOnesAreTheSameOnAnyNumberOfThreads) {
  ExpectSameGradientsHoweverComputed<float>(
      {{"softmax_with_cross_entropy",
        {{"Logits", Numbers({500, 300}, 1)}, {"Label", Labels({500, 1}, 300)}},
        {"Softmax", "Loss"}},
       {"Loss"},
       {"Logits"}});
}

TEST(SoftmaxWithCrossEntropyGradientTest, RefusesLabelsOutside) {
  ExpectRefusals({{{"softmax_with_cross_entropy_grad",
                    {{"Softmax", Numbers({2, 3}, 1)},
                     {"Label", Tensor::Of<int64_t>({2, 1}, {0, 3})},
                     {"Loss@GRAD", Numbers({2, 1}, 1)}},
                    {"Logits@GRAD"}},
                   "'Label' has the value 3"}});
}

TEST(SigmoidCrossEntropyGradientTest, AgreesWithDifferences) {
  for (const char* attrs : {"", "normalize=true, ignore_index=0", "normalize=true"}) {
    ExpectGradients({{"sigmoid_cross_entropy_with_logits",
                      {{"X", Numbers<double>({5, 4}, 1)}, {"Label", Bits({5, 4})}},
                      {"Out"},
                      attrs},
                     {"Out"},
                     {"X"}});
  }
}

struct PairLoss {
  const char* type;
  const char* input;
  const char* target;
  const char* loss;
  const char* attrs = "";
};

class PairLossGradientTest : public ::testing::TestWithParam<PairLoss> {};

TEST_P(PairLossGradientTest, AgreesWithDifferences) {
  const PairLoss& loss = GetParam();
  for (const Tensor& target : {Bits({6, 1}), Probabilities({6, 1}, 2)}) {
    Tensor x = Numbers<double>({6, 1}, 1);
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.mutable_data<double>()[i] = x.data<double>()[i] * 0.45 + 0.5;
    }
    ExpectGradients({{loss.type, {{loss.input, x}, {loss.target, target}}, {loss.loss}, loss.attrs},
                     {loss.loss},
                     {loss.input}});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Losses, PairLossGradientTest,
    ::testing::Values(PairLoss{"log_loss", "Predicted", "Labels", "Loss", "epsilon=0.01"},
                      PairLoss{"hinge_loss", "Logits", "Labels", "Loss"},
                      PairLoss{"bce_loss", "X", "Label", "Out"},
                      PairLoss{"kldiv_loss", "X", "Target", "Loss", R"(reduction="none")"},
                      PairLoss{"kldiv_loss", "X", "Target", "Loss", R"(reduction="mean")"},
                      PairLoss{"kldiv_loss", "X", "Target", "Loss", R"(reduction="sum")"},
                      PairLoss{"kldiv_loss", "X", "Target", "Loss", R"(reduction="batchmean")"}));

TEST(HuberLossGradientTest, AgreesWithDifferences) {
  ExpectGradients({{"huber_loss",
                    {{"X", Numbers<double>({5, 3}, 1)}, {"Y", Numbers<double>({5, 3}, 2)}},
                    {"Out", "Residual"},
                    "delta=0.4"},
                   {"Out"},
                   {"X", "Y"}});
}

TEST(RankLossGradientTest, AgreesWithDifferences) {
  ExpectGradients({{"rank_loss",
                    {{"Label", Bits({6, 1})},
                     {"Left", Numbers<double>({6, 1}, 1)},
                     {"Right", Numbers<double>({6, 1}, 2)}},
                    {"Out"}},
                   {"Out"},
                   {"Left", "Right"}});
}

// In either dtype: Paddle has neither of these two losses any more.
template <typename T>
void CheckOldLosses(double step, double tolerance) {
  ExpectGradients<T>({{"margin_rank_loss",
                       {{"Label", Tensor::Of<T>({4, 1}, {1, -1, 1, -1})},
                        {"X1", Numbers<T>({4, 1}, 1)},
                        {"X2", Numbers<T>({4, 1}, 2)}},
                       {"Activated", "Out"},
                       "margin=0.3"},
                      {"Out"},
                      {"X1", "X2"},
                      step,
                      tolerance});
  Differentiated smooth = {{"smooth_l1_loss",
                            {{"X", Numbers<T>({4, 3, 2}, 1)}, {"Y", Numbers<T>({4, 3, 2}, 2)}},
                            {"Diff", "Out"},
                            "sigma=1.3"},
                           {"Out"},
                           {"X", "Y"},
                           step,
                           tolerance};
  ExpectGradients<T>(smooth);
  smooth.run.inputs.emplace_back("InsideWeight", Numbers<T>({4, 3, 2}, 3));
  smooth.run.inputs.emplace_back("OutsideWeight", Numbers<T>({4, 3, 2}, 4));
  ExpectGradients<T>(smooth);
}

TEST(OldLossGradientTest, AgreesWithDifferences) {
  CheckOldLosses<double>(1e-6, 1e-7);
  CheckOldLosses<float>(1e-3, 2e-3);
}

}  // namespace
}  // namespace interp::testing
