// Gradients of recurrent ops, of CRFs and of CTC against differences: the ops that Paddle 2.6.2 no
// longer has, and what is to hold of all of them.
#include <gtest/gtest.h>

#include "tests/kernels/finite_differences.h"

namespace interp::testing::recurrent_gradient_test {
namespace {

constexpr int64_t kRows = 9;
constexpr int64_t kSequences = 5;
constexpr int64_t kSize = 3;
constexpr int64_t kWidth = 2;
const Lod kRagged = {{0, 3, 3, 7, 7, 9}};

Differentiated Lstmp(const std::string& attrs, bool states, bool peepholes = true) {
  Differentiated op = {{"lstmp",
                        {{"Input", Numbers<double>({kRows, 4 * kSize}, 1, kRagged)},
                         {"Weight", Numbers<double>({kWidth, 4 * kSize}, 2)},
                         {"Bias", Numbers<double>({1, (peepholes ? 7 : 4) * kSize}, 3)},
                         {"ProjWeight", Numbers<double>({kSize, kWidth}, 4)}},
                        {"Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"},
                        attrs},
                       {"Projection"},
                       {"Input", "Weight", "Bias", "ProjWeight"}};
  if (states) {
    op.run.inputs.emplace_back("H0", Numbers<double>({kSequences, kWidth}, 5));
    op.run.inputs.emplace_back("C0", Numbers<double>({kSequences, kSize}, 6));
    op.wanted.insert(op.wanted.end(), {"H0", "C0"});
  }
  return op;
}

TEST(LstmpGradientTest, AgreesWithDifferences) {
  ExpectGradients(Lstmp("", false));
  ExpectGradients(Lstmp("is_reverse=true", true));
  ExpectGradients(Lstmp("use_peepholes=false", true, /*peepholes=*/false));
  ExpectGradients(Lstmp("proj_activation=\"identity\", cell_activation=\"sigmoid\"", true));
  ExpectGradients(Lstmp("is_reverse=true, cell_clip=0.3, proj_clip=0.2", true));
}

// Paddle reads beyond the states there.
TEST(LstmGradientTest, EmptySequencesHaveStatesWithoutGradient) {
  Differentiated op = {{"lstm",
                        {{"Input", Numbers<double>({kRows, 4 * kSize}, 1, kRagged)},
                         {"Weight", Numbers<double>({kSize, 4 * kSize}, 2)},
                         {"Bias", Numbers<double>({1, 7 * kSize}, 3)},
                         {"H0", Numbers<double>({kSequences, kSize}, 5)},
                         {"C0", Numbers<double>({kSequences, kSize}, 6)}},
                        {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"}},
                       {"Hidden"},
                       {"Input", "Weight", "Bias", "H0", "C0"}};
  ExpectGradients(op);
}

TEST(GruGradientTest, EmptySequencesHaveStatesWithoutGradient) {
  for (const char* attrs : {"", "origin_mode=true, is_reverse=true"}) {
    ExpectGradients({{"gru",
                      {{"Input", Numbers<double>({kRows, 3 * kSize}, 1, kRagged)},
                       {"Weight", Numbers<double>({kSize, 3 * kSize}, 2)},
                       {"Bias", Numbers<double>({1, 3 * kSize}, 3)},
                       {"H0", Numbers<double>({kSequences, kSize}, 5)}},
                      {"Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"},
                      attrs},
                     {"Hidden"},
                     {"Input", "Weight", "Bias", "H0"}});
  }
}

TEST(LstmUnitGradientTest, AgreesWithDifferences) {
  for (const char* attrs : {"", "forget_bias=0.75"}) {
    ExpectGradients(
        {{"lstm_unit",
          {{"X", Numbers<double>({3, 4 * kSize}, 1)}, {"C_prev", Numbers<double>({3, kSize}, 2)}},
          {"C", "H"},
          attrs},
         {"C", "H"},
         {"X", "C_prev"}});
  }
}

// 30 sequences of 0 to 12 rows.
Lod ManySequences() {
  Lod lod = {{0}};
  for (int64_t i = 0; i < 30; ++i) lod[0].push_back(lod[0].back() + i * 7 % 13);
  return lod;
}

TEST(RecurrentGradientTest, LargeOnesAreTheSameOnAnyNumberOfThreads) {
  constexpr int64_t kWide = 70;
  const Lod lod = ManySequences();
  const int64_t rows = lod[0].back();
  ExpectSameGradientsHoweverComputed<float>({{"lstm",
                                              {{"Input", Numbers({rows, 4 * kWide}, 1, lod)},
                                               {"Weight", Numbers({kWide, 4 * kWide}, 2)},
                                               {"Bias", Numbers({1, 7 * kWide}, 3)},
                                               {"H0", Numbers({30, kWide}, 4)},
                                               {"C0", Numbers({30, kWide}, 5)}},
                                              {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"}},
                                             {"Hidden"},
                                             {"Input", "Weight", "Bias", "H0", "C0"}});
  ExpectSameGradientsHoweverComputed<float>(
      {{"gru",
        {{"Input", Numbers({rows, 3 * kWide}, 1, lod)},
         {"Weight", Numbers({kWide, 3 * kWide}, 2)},
         {"Bias", Numbers({1, 3 * kWide}, 3)},
         {"H0", Numbers({30, kWide}, 4)}},
        {"Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"}},
       {"Hidden"},
       {"Input", "Weight", "Bias", "H0"}});
}

TEST(GruUnitGradientTest, AgreesWithDifferences) {
  ExpectGradients({{"gru_unit",
                    {{"Input", Numbers<double>({4, 3 * kSize}, 1)},
                     {"HiddenPrev", Numbers<double>({4, kSize}, 2)},
                     {"Weight", Numbers<double>({kSize, 3 * kSize}, 3)},
                     {"Bias", Numbers<double>({1, 3 * kSize}, 4)}},
                    {"Gate", "ResetHiddenPrev", "Hidden"}},
                   {"Hidden"},
                   {"Input", "HiddenPrev", "Weight", "Bias"}});
}

Tensor Labels(int64_t count, int64_t tags, const Lod& lod) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(i * 5 % tags);
  Tensor tensor = Tensor::Of<int64_t>({count, 1}, labels);
  tensor.lod = lod;
  return tensor;
}

TEST(LinearChainCrfGradientTest, AgreesWithDifferences) {
  constexpr int64_t kTags = 4;
  ExpectGradients({{"linear_chain_crf",
                    {{"Emission", Numbers<double>({kRows, kTags}, 1, kRagged)},
                     {"Transition", Numbers<double>({kTags + 2, kTags}, 2)},
                     {"Label", Labels(kRows, kTags, kRagged)}},
                    {"Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"}},
                   {"LogLikelihood"},
                   {"Emission", "Transition"}});
}

TEST(WarpCtcGradientTest, AgreesWithDifferences) {
  Tensor label = Tensor::Of<int32_t>({4, 1}, {1, 2, 1, 1});
  label.lod = {{0, 2, 2, 3, 3, 4}};
  ExpectGradients(
      {{"warpctc",
        {{"Logits", Numbers<double>({kRows, 3}, 1, {{0, 3, 4, 7, 8, 9}})}, {"Label", label}},
        {"Loss", "WarpCTCGrad"}},
       {"Loss"},
       {"Logits"}});
}

}  // namespace
}  // namespace interp::testing::recurrent_gradient_test
