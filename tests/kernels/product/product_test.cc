// Products of more rows of Y than are packed at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/kernels/run_op.h"

namespace interp {
namespace {

// Small integers: all sums are exact, in whatever order.
Tensor Integers(int64_t rows, int64_t columns, uint32_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * columns; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(static_cast<int>(seed >> 29) - 3));
  }
  return Tensor::Of<float>({rows, columns}, values);
}

// Element (i, j) of the matrix, or of its transpose.
float At(const Tensor& matrix, bool transposed, int64_t i, int64_t j) {
  if (transposed) std::swap(i, j);
  return matrix.data<float>()[i * matrix.shape[1] + j];
}

// relu(op(X) op(Y) / 2 + bias).
std::vector<float> Expected(const Tensor& x, bool trans_x, const Tensor& y, bool trans_y,
                            const Tensor& bias) {
  const int64_t m = x.shape[trans_x ? 1 : 0];
  const int64_t k = x.shape[trans_x ? 0 : 1];
  std::vector<float> out;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < bias.numel(); ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += At(x, trans_x, i, p) * At(y, trans_y, p, j);
      out.push_back(std::max(0.f, sum / 2 + bias.data<float>()[j]));
    }
  }
  return out;
}

TEST(ProductTest, PartsOfTheSumsAddUpBeforeWhatFollowsThem) {
  constexpr int64_t kRows = 17;
  constexpr int64_t kDepth = 3000;
  constexpr int64_t kColumns = 300;
  const Tensor bias = Integers(1, kColumns, 3);
  for (const bool trans_x : {false, true}) {
    for (const bool trans_y : {false, true}) {
      const Tensor x = trans_x ? Integers(kDepth, kRows, 1) : Integers(kRows, kDepth, 1);
      const Tensor y = trans_y ? Integers(kColumns, kDepth, 2) : Integers(kDepth, kColumns, 2);
      const std::vector<float> expected = Expected(x, trans_x, y, trans_y, bias);
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(
            absl::StrCat("trans_x ", trans_x, ", trans_y ", trans_y, ", threads ", threads));
        CoreOptions options;
        options.num_threads = threads;
        auto out = testing::RunOp(
            {.type = "fused_matmul",
             .inputs = {{"X", x}, {"Y", y}, {"Bias", bias}},
             .outputs = {"Out"},
             .attrs = absl::StrCat(
                 "fuse_activation=\"relu\", matmul_alpha=0.5, trans_x=", trans_x ? "true" : "false",
                 ", trans_y=", trans_y ? "true" : "false")},
            options);
        ASSERT_TRUE(out.ok()) << out.status();
        const float* const values = (*out)[0].data<float>();
        EXPECT_EQ(std::vector<float>(values, values + (*out)[0].numel()), expected);
      }
    }
  }
}

}  // namespace
}  // namespace interp
