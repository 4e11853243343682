#include "kernels/product/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/product/gemm_bf16.h"

namespace interp::nn {
namespace {

// Small integers: all sums are exact, in whatever order.
template <typename T>
std::vector<T> Values(int64_t count, uint32_t seed) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<T>(seed >> 28));
  }
  return values;
}

template <typename T>
std::vector<T> Product(int64_t m, int64_t k, int64_t n, const std::vector<T>& a, int64_t lda,
                       const std::vector<T>& b, std::vector<T> c, int64_t ldc, bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = accumulate ? c[i * ldc + j] : T{0};
      for (int64_t p = 0; p < k; ++p) sum += a[i * lda + p] * b[p * n + j];
      c[i * ldc + j] = sum;
    }
  }
  return c;
}

// a^T, rows m + 1 apart.
template <typename T>
std::vector<T> Transposed(int64_t m, int64_t k, const std::vector<T>& a, int64_t lda) {
  std::vector<T> columns(k * (m + 1));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) columns[p * (m + 1) + i] = a[i * lda + p];
  }
  return columns;
}

template <typename T>
void ExpectProducts(int64_t m, int64_t k, int64_t n) {
  SCOPED_TRACE(::testing::Message() << m << " x " << k << " x " << n);
  const int64_t lda = k + 3;
  const int64_t ldc = n + 5;
  const std::vector<T> a = Values<T>(m * lda, 1);
  const std::vector<T> b = Values<T>(k * n, 2);
  AlignedArray<T> packed(PackedSize<T>(k, n));
  PackMatrix(k, n, b.data(), n, int64_t{1}, packed.data());
  for (const bool accumulate : {false, true}) {
    const std::vector<T> before = Values<T>(m * ldc, 3);
    std::vector<T> c = before;
    GemmPacked(m, k, n, a.data(), lda, packed.data(), c.data(), ldc, accumulate);
    const std::vector<T> expected = Product(m, k, n, a, lda, b, before, ldc, accumulate);
    EXPECT_EQ(c, expected);
    for (const PanelsFrom from : {PanelsFrom::kMemory, PanelsFrom::kMemoryInARow}) {
      c = before;
      GemmPacked(m, k, n, a.data(), lda, packed.data(), c.data(), ldc, accumulate, from);
      EXPECT_EQ(c, expected);
    }
    c = before;
    GemmPackedTransposed(m, k, n, Transposed(m, k, a, lda).data(), m + 1, packed.data(), c.data(),
                         ldc, accumulate);
    EXPECT_EQ(c, expected);
  }
}

template <typename T>
class GemmTest : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, double, uint32_t>;
TYPED_TEST_SUITE(GemmTest, ElementTypes);

// Every height of a tile, alone and beside others.
TYPED_TEST(GemmTest, PackedProductsHaveAnyNumberOfRows) {
  for (int64_t m = 0; m <= 5 * kGemmRows; ++m) ExpectProducts<TypeParam>(m, 7, 150);
}

// Every number of panels, the last one full or not.
TYPED_TEST(GemmTest, PackedProductsHaveAnyNumberOfColumns) {
  for (int64_t n = 0; n <= 9 * kPanel<TypeParam>; n += 3) {
    for (int64_t m = 1; m <= 6; ++m) ExpectProducts<TypeParam>(m, 5, n);
    ExpectProducts<TypeParam>(kGemmRows + 1, 5, n);
  }
}

TYPED_TEST(GemmTest, PackedProductsHaveAnyDepth) {
  for (const int64_t k : {0, 1, 2, 255, 256, 257, 600}) {
    for (const int64_t m : {1, 3, 14}) ExpectProducts<TypeParam>(m, k, 70);
  }
}

// More rows than go into the cache at once.
TYPED_TEST(GemmTest, PackedProductsHaveManyRows) {
  ExpectProducts<TypeParam>(20 * kGemmRows + 1, 3, 40);
}

// Several blocks of A, whose copies are deeper than one slice, against many panels.
TYPED_TEST(GemmTest, PackedProductsCopyBlocksOfRows) {
  for (const int64_t m : {kGemmBlock, kGemmBlock + 13}) {
    ExpectProducts<TypeParam>(m, kGemmDepth + 9, 4 * kPanel<TypeParam> + 5);
  }
}

TYPED_TEST(GemmTest, PacksTransposedMatricesAlike) {
  for (const int64_t n : {1, 5, 31, 32, 33, 100}) {
    for (const int64_t k : {0, 1, 7, 8, 33}) {
      const std::vector<TypeParam> b = Values<TypeParam>(k * n, 1);
      std::vector<TypeParam> columns(k * n);
      for (int64_t i = 0; i < k * n; ++i) columns[i % n * k + i / n] = b[i];
      const int64_t size = PackedSize<TypeParam>(k, n);
      std::vector<TypeParam> packed(size, TypeParam{9});
      std::vector<TypeParam> packed_columns(size, TypeParam{8});
      PackMatrix(k, n, b.data(), n, int64_t{1}, packed.data());
      PackMatrix(k, n, columns.data(), int64_t{1}, k, packed_columns.data());
      EXPECT_EQ(packed, packed_columns) << k << " x " << n;
    }
  }
}

// Both ways to multiply pairs, where the processor has both.
std::vector<bool> PairInstructions() {
  return HasPairInstruction() ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

// Sums of bfloat16 products, rows of A `k + k % 2 + 2` apart with a zero after an odd k.
void ExpectPairProducts(int64_t m, int64_t k, int64_t n, bool transposed) {
  SCOPED_TRACE(::testing::Message() << m << " x " << k << " x " << n << " " << transposed);
  const int64_t lda = k + k % 2 + 2;
  std::vector<float> a = Values<float>(m * lda, 1);
  for (int64_t i = 0; k % 2 != 0 && i < m; ++i) a[i * lda + k] = 0;
  const std::vector<float> b = Values<float>(k * n, 2);
  const std::vector<bfloat16> narrow_a(a.begin(), a.end());
  std::vector<bfloat16> narrow_b(b.begin(), b.end());
  for (int64_t i = 0; transposed && i < k * n; ++i) narrow_b[i % n * k + i / n] = b[i];
  AlignedArray<uint32_t> packed(PackedPairs(k, n));
  PackPairs(k, n, narrow_b.data(), transposed ? k : n, transposed, packed.data());
  for (const bool instruction : PairInstructions()) {
    std::vector<float> c(m * n, -1.0F);
    const auto store = [&](int64_t i, int64_t j, int64_t width, const float* sums) {
      std::copy_n(sums, width, c.data() + i * n + j);
    };
    GemmPairs(m, k, n, narrow_a.data(), lda, packed.data(), store, instruction);
    EXPECT_EQ(c, Product(m, k, n, a, lda, b, c, n, /*accumulate=*/false)) << instruction;
  }
}

// What the instruction does to denormal numbers tells whether it was taken.
TEST(GemmPairsTest, TheInstructionIsTakenWhereTheProcessorHasIt) {
  const std::vector<bfloat16> a = {0x1p-70F, 0};
  AlignedArray<uint32_t> packed(PackedPairs(2, 1));
  PackPairs(2, 1, a.data(), 1, /*transposed=*/false, packed.data());
  const auto product_is = [&](float expected) {
    return
        [expected](int64_t, int64_t, int64_t, const float* sums) { EXPECT_EQ(sums[0], expected); };
  };
  GemmPairs(1, 2, 1, a.data(), 2, packed.data(), product_is(HasPairInstruction() ? 0 : 0x1p-140F));
  GemmPairs(1, 2, 1, a.data(), 2, packed.data(), product_is(0x1p-140F), /*instruction=*/false);
}

TEST(GemmPairsTest, ProductsHaveAnySize) {
  for (const bool transposed : {false, true}) {
    for (int64_t m = 0; m <= 3 * kGemmRows; ++m) ExpectPairProducts(m, 7, 70, transposed);
    for (int64_t n = 0; n <= 3 * kPairPanel; ++n) ExpectPairProducts(5, 6, n, transposed);
    for (const int64_t k : {0, 1, 2, 3, 255, 600}) ExpectPairProducts(14, k, 40, transposed);
  }
}

}  // namespace
}  // namespace interp::nn
