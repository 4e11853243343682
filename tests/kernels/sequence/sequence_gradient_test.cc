// Gradients of sequence ops that Paddle 2.6.2 no longer has, in dtypes that it does not compute, or
// where what it computes is of no use.
#include <gtest/gtest.h>

#include <array>

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

TEST(SequenceConvGradientTest, NothingGivesZeros) {
  for (const auto& [rows, width, outputs] : {std::array{0, 2, 3}, {4, 0, 3}, {4, 2, 0}}) {
    const Lod lod = {{0, rows}};
    ExpectGradients({{"sequence_conv",
                      {{"X", Numbers<double>({rows, width}, 1, lod)},
                       {"Filter", Numbers<double>({3 * width, outputs}, 2)}},
                      {"Out"},
                      "contextLength=3, contextStart=-1"},
                     {"Out"},
                     {"X", "Filter"}});
  }
}

// Counts of sequences that X does not have are left over.
TEST(CvmGradientTest, TakesRowIOfTheCountsForSequenceI) {
  const std::vector<Tensor> gradients =
      RunOp({"cvm_grad",
             {{"X", Numbers({3, 4}, 1, {{0, 2, 3}})},
              {"CVM", Tensor::Of<float>({3, 2}, {10, 11, 12, 13, 14, 15})},
              {"Y@GRAD", Tensor::Of<float>({3, 4}, std::vector<float>(12, 1))}},
             {"X@GRAD"},
             "use_cvm=true"})
          .value();
  const float* const grad = gradients[0].data<float>();
  EXPECT_EQ(std::vector<float>(grad, grad + 12),
            (std::vector<float>{10, 11, 1, 1, 10, 11, 1, 1, 12, 13, 1, 1}));
}

// Two channels of matrices of 2 x 3, 1 x 2 and 0 x 1.
TEST(SequenceTopkAvgPoolingGradientTest, AgreesWithDifferences) {
  for (const char* topks : {"[1]", "[1, 3]", "[2, 1, 4]"}) {
    ExpectGradients<float>({{"sequence_topk_avg_pooling",
                             {{"X", Numbers({16, 1}, 1, {{0, 12, 16, 16}})},
                              {"ROW", Numbers({3, 1}, 2, {{0, 2, 3, 3}})},
                              {"COLUMN", Numbers({6, 1}, 3, {{0, 3, 5, 6}})}},
                             {"Out", "pos"},
                             absl::StrCat("channel_num=2, topks=", topks)},
                            {"Out"},
                            {"X"},
                            /*step=*/1e-3,
                            /*tolerance=*/1e-3});
  }
}

TEST(FilterByInstagGradientTest, AgreesWithDifferences) {
  Tensor tags = Tensor::Of<int64_t>({5, 1}, {1, 2, 7, 3, 2});
  tags.lod = {{0, 2, 3, 4, 5}};
  for (const int64_t wanted : {2, 3, 9}) {
    ExpectGradients({{"filter_by_instag",
                      {{"Ins", Numbers<double>({8, 2}, 1, kRagged)},
                       {"Ins_tag", tags},
                       {"Filter_tag", Tensor::Of<int64_t>({1}, {wanted})}},
                      {"Out", "LossWeight", "IndexMap"},
                      "is_lod=true"},
                     {"Out"},
                     {"Ins"}});
  }
}

TEST(SequenceGradientTest, LargeOnesAreTheSameOnAnyNumberOfThreads) {
  const Lod lod = {{0, 900, 900, 1700, 4000}};
  const Tensor x = Numbers({4000, 24}, 1, lod);
  ExpectSameGradientsHoweverComputed<float>(
      {{"sequence_conv",
        {{"X", x}, {"Filter", Numbers({72, 9}, 2)}, {"PaddingData", Numbers({2, 24}, 3)}},
        {"Out"},
        "contextLength=3, contextStart=-1, paddingTrainable=true"},
       {"Out"},
       {"X", "Filter", "PaddingData"}});
  ExpectSameGradientsHoweverComputed<float>(
      {{"row_conv", {{"X", x}, {"Filter", Numbers({5, 24}, 2)}}, {"Out"}},
       {"Out"},
       {"X", "Filter"}});
  Tensor counts = Numbers({70000, 1}, 1);
  counts.lod = {{0}};
  for (int64_t i = 1; i <= 4000; ++i) counts.lod[0].push_back(70000 * i / 4000);
  Tensor rows = x;
  rows.lod.clear();
  ExpectSameGradientsHoweverComputed<float>(
      {{"sequence_expand", {{"X", rows}, {"Y", counts}}, {"Out"}}, {"Out"}, {"X"}});
}

}  // namespace
}  // namespace interp::testing
