// Gradients of recurrent ops that Paddle 2.6.2 no longer has, or where it computes nothing of use.
#include <gtest/gtest.h>

#include "tests/kernels/finite_differences.h"

namespace interp::testing {
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

}  // namespace
}  // namespace interp::testing
