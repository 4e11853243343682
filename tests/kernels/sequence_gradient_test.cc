// Gradients of sequence ops that Paddle 2.6.2 no longer has, in dtypes that it does not compute, or
// where what it computes is of no use.
#include <gtest/gtest.h>

#include "tests/kernels/finite_differences.h"

namespace interp::testing {
namespace {

const Lod kRagged = {{0, 3, 3, 7, 8}};

TEST(SequenceConvGradientTest, AgreesWithDifferences) {
  for (const int start : {-6, -2, -1, 0, 1, 4}) {
    for (const bool padded : {false, true}) {
      const int64_t rows = std::max(0, -start) + std::max(0, start + 2);
      Differentiated op = {
          {"sequence_conv",
           {{"X", Numbers<double>({8, 2}, 1, kRagged)}, {"Filter", Numbers<double>({6, 4}, 2)}},
           {"Out"},
           absl::StrCat("contextLength=3, contextStart=", start,
                        ", paddingTrainable=", padded ? "true" : "false")},
          {"Out"},
          {"X", "Filter"}};
      if (padded) {
        op.run.inputs.emplace_back("PaddingData", Numbers<double>({rows, 2}, 3));
        op.wanted.push_back("PaddingData");
      }
      ExpectGradients(op);
    }
  }
}

}  // namespace
}  // namespace interp::testing
