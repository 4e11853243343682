// PackedWeight: a matrix that the rows of a recurrent network are multiplied by in every step. Sums
// are taken in ComputeType<E>; with 16-bit E the rows are rounded to E before (RoundRows).
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/product/gemm.h"
#include "kernels/product/gemm_bf16.h"
#include "kernels/util/arithmetic.h"

namespace interp::nn {

// Elements from one row of k operands to the next: whole pairs of bfloat16.
template <typename E>
int64_t OperandLength(int64_t k) {
  return std::is_same_v<E, bfloat16> ? (k + 1) / 2 * 2 : k;
}

// Rows of k elements as operands: themselves where E is what is computed in, else rounded to
// `memory`, which has room for m * OperandLength(k).
template <typename E>
const E* RoundRows(int64_t m, int64_t k, const ComputeType<E>* rows, E* memory) {
  if constexpr (std::is_same_v<E, ComputeType<E>>) {
    return rows;
  } else {
    const int64_t length = OperandLength<E>(k);
    for (int64_t i = 0; i < m; ++i) {
      std::copy_n(rows + i * k, k, memory + i * length);
      std::fill_n(memory + i * length + k, length - k, E());
    }
    return memory;
  }
}

// E is float, double or bfloat16.
template <typename E>
class PackedWeight {
 public:
  using Sum = ComputeType<E>;

  // Of a weight k x n or, with `transposed`, n x k. May throw std::bad_alloc.
  PackedWeight(int64_t k, int64_t n, const E* weight, bool transposed)
      : k_(k), n_(n), packed_(Size(k, n)) {
    if constexpr (kPairs) {
      PackPairs(k, n, weight, transposed ? k : n, transposed, packed_.data());
    } else {
      PackMatrix(k, n, weight, transposed ? 1 : n, transposed ? k : 1, packed_.data());
    }
  }

  // c (+)= rows x weight, of m rows that lie OperandLength(k) apart.
  void Multiply(int64_t m, const E* rows, bool accumulate, Sum* c) const {
    if constexpr (kPairs) {
      const int64_t n = n_;
      GemmPairs(m, k_, n, rows, OperandLength<E>(k_), packed_.data(),
                [=](int64_t i, int64_t j, int64_t width, const float* sums) {
                  float* const to = c + i * n + j;
                  if (accumulate) {
                    for (int64_t l = 0; l < width; ++l) to[l] += sums[l];
                  } else {
                    std::copy_n(sums, width, to);
                  }
                });
    } else {
      GemmPacked(m, k_, n_, rows, k_, packed_.data(), c, n_, accumulate);
    }
  }

 private:
  static constexpr bool kPairs = std::is_same_v<E, bfloat16>;

  static int64_t Size(int64_t k, int64_t n) {
    if constexpr (kPairs) {
      return PackedPairs(k, n);
    } else {
      return PackedSize<E>(k, n);
    }
  }

  int64_t k_;
  int64_t n_;
  AlignedArray<std::conditional_t<kPairs, uint32_t, E>> packed_;
};

}  // namespace interp::nn
