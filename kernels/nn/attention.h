// Attention of one head: each query takes the mean of the values, by the softmax of its products
// with the keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/util/parallel_for.h"

namespace interp::nn {

// One head of one sequence. Rows lie `*_stride` elements apart.
template <typename T>
struct AttentionHead {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  T* out = nullptr;
  const T* mask = nullptr;  // rows x columns, added to the scores; may be null
  T* weights = nullptr;     // rows x columns; may be null
  T* log_sums = nullptr;    // of each row; may be null
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  int64_t out_stride = 0;
  int64_t rows = 0;     // queries
  int64_t columns = 0;  // keys
  int64_t width = 0;    // of queries and keys
  int64_t values = 0;   // width of the values
  T scale = 1;
  // Query i sees the keys up to i + `ahead`.
  int64_t ahead = std::numeric_limits<int32_t>::max();

  // Elements of the memory that RunAttention wants.
  int64_t scratch() const { return columns * (width + 1); }
};

// The scores of query `row` with the first `count` keys, of which `keys` has one column each.
template <typename T>
void AttentionScores(const AttentionHead<T>& head, int64_t row, int64_t count, const T* keys,
                     T* scores) {
  const T* const mask = head.mask == nullptr ? nullptr : head.mask + row * head.columns;
  std::fill_n(scores, count, T{0});
  for (int64_t d = 0; d < head.width; ++d) {
    const T factor = head.scale * head.q[row * head.q_stride + d];
    const T* const of_keys = keys + d * head.columns;
    for (int64_t j = 0; j < count; ++j) scores[j] += factor * of_keys[j];
  }
  for (int64_t j = 0; mask != nullptr && j < count; ++j) scores[j] += mask[j];
}

// Makes weights of scores, and gives the logarithm of the sum of their exponentials. Zeros where
// nothing is seen.
template <typename T>
T AttentionWeights(int64_t count, T* scores) {
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  const T largest = count == 0 ? kNothing : *std::max_element(scores, scores + count);
  if (largest == kNothing && std::count(scores, scores + count, kNothing) == count) {
    std::fill_n(scores, count, T{0});
    return kNothing;
  }
  T sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    scores[j] = std::exp(scores[j] - largest);
    sum += scores[j];
  }
  for (int64_t j = 0; j < count; ++j) scores[j] /= sum;
  return largest + std::log(sum);
}

// `scratch` has head.scratch() elements.
template <typename T>
void RunAttention(const AttentionHead<T>& head, T* scratch) {
  T* const keys = scratch;
  T* const own = scratch + head.columns * head.width;
  for (int64_t j = 0; j < head.columns; ++j) {
    for (int64_t d = 0; d < head.width; ++d) {
      keys[d * head.columns + j] = head.k[j * head.k_stride + d];
    }
  }
  for (int64_t i = 0; i < head.rows; ++i) {
    const int64_t seen = std::clamp<int64_t>(i + head.ahead + 1, 0, head.columns);
    T* const weights = head.weights == nullptr ? own : head.weights + i * head.columns;
    AttentionScores(head, i, seen, keys, weights);
    const T log_sum = AttentionWeights(seen, weights);
    if (head.log_sums != nullptr) head.log_sums[i] = log_sum;
    std::fill(weights + seen, weights + head.columns, T{0});
    T* const to = head.out + i * head.out_stride;
    std::fill_n(to, head.values, T{0});
    for (int64_t j = 0; j < seen; ++j) {
      const T* const value = head.v + j * head.v_stride;
      for (int64_t d = 0; d < head.values; ++d) to[d] += weights[j] * value[d];
    }
  }
}

// The element of `mask` [batch or 1, heads or 1, rows, columns] where a head's part starts.
template <typename T, typename Dims>
const T* MaskOf(const T* mask, const Dims& dims, int64_t batch, int64_t head) {
  const int64_t size = dims[2] * dims[3];
  return mask + ((dims[0] == 1 ? 0 : batch) * dims[1] + (dims[1] == 1 ? 0 : head)) * size;
}

}  // namespace interp::nn
