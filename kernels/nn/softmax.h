// Softmax along an axis, for the ops softmax and log_softmax and for losses.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/attr_reader.h"
#include "core/tensor.h"
#include "kernels/product/row_ops.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/transpose_plane.h"
#include "kernels/util/vector_math.h"

namespace interp::nn {

// Attributes of softmax, log_softmax and their gradients.
struct SoftmaxAttrs {
  int64_t axis = -1;
};
inline SoftmaxAttrs ReadSoftmax(AttrReader& reader) { return {reader.Int("axis", -1)}; }

namespace softmax {

// The tensor in memory order around the axis: outer x length x inner.
struct Slices {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

inline Slices SliceAlong(const Tensor& x, int64_t axis) {
  Slices slices;
  const int rank = x.shape.rank();
  if (rank == 0) return slices;
  const int logical = *NormalizeAxis(axis, rank);
  bool after = false;
  for (int i = 0; i < rank; ++i) {
    int dim = i;  // of the shape, at position i in memory
    if (x.layout == Layout::kChannelsLast && i > 0) dim = i == rank - 1 ? 1 : i + 1;
    if (dim == logical) {
      slices.length = x.shape[dim];
      after = true;
    } else {
      (after ? slices.inner : slices.outer) *= x.shape[dim];
    }
  }
  return slices;
}

template <typename T>
inline constexpr T kLowest = T{-64};

template <typename T, bool kLog>
void SoftmaxRow(const T* x, int64_t n, T* y) {
  const T max = RowMax(x, n);
  const auto shifted = [max](T value) {
    return value - max < kLowest<T> ? kLowest<T> : value - max;
  };
  if constexpr (kLog) {
    for (int64_t i = 0; i < n; ++i) y[i] = shifted(x[i]);
    // The sum in blocks, as the exponentials themselves are not kept.
    constexpr int64_t kBlock = 256;
    T block[kBlock];
    T sum = 0;
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t count = std::min(kBlock, n - begin);
      for (int64_t i = 0; i < count; ++i) block[i] = ExpInRange(y[begin + i]);
      sum += RowSum(block, count);
    }
    const T log = Log(sum);
    for (int64_t i = 0; i < n; ++i) y[i] -= log;
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = ExpInRange(shifted(x[i]));
    const T factor = T{1} / RowSum(y, n);
    for (int64_t i = 0; i < n; ++i) y[i] *= factor;
  }
}

// In the first `count` lanes true.
template <typename T>
auto FirstLanes(int64_t count) {
  typename VectorOf<T>::type lane;
#pragma GCC unroll 16
  for (int i = 0; i < VectorOf<T>::kLanes; ++i) lane[i] = static_cast<T>(i);
  return lane < static_cast<T>(count);
}

// Sets the elements from n on, up to the end of the last vector. Not one by one: a vector that is
// read right behind stores of its parts waits for them.
template <typename T>
void FillPadding(T* x, int64_t n, int64_t padded, T value) {
  using U = typename VectorOf<T>::unaligned;
  if (n == padded) return;
  const int64_t first = padded - VectorOf<T>::kLanes;
  U& last = *reinterpret_cast<U*>(x + first);
  last = FirstLanes<T>(n - first) ? last : U{} + value;
}

// MakeNumerators of a row of kVectors vectors, which stays in registers: a step that reads what the
// one before has just stored waits for it.
template <int kVectors>
float NumeratorsInRegisters(float* x, int64_t n) {
  using V = VectorOf<float>::type;
  using U = VectorOf<float>::unaligned;
  constexpr int kLanes = VectorOf<float>::kLanes;
  constexpr int kLast = kVectors - 1;
  const auto seen = FirstLanes<float>(n - int64_t{kLast} * kLanes);  // of the last vector
  V v[kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) v[i] = *reinterpret_cast<const U*>(x + i * kLanes);
  v[kLast] = seen ? v[kLast] : V{} - std::numeric_limits<float>::infinity();
  const auto larger = [](auto a, auto b) { return b > a ? b : a; };
  V largest = v[kLast];
#pragma GCC unroll 16
  for (int i = 0; i < kLast; ++i) largest = larger(largest, v[i]);
  const float max = FoldLanes<float>(largest, larger);
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) {
    const V shifted = v[i] - max;
    v[i] = ExpInRange<V>(shifted < kLowest<float> ? V{} + kLowest<float> : shifted);
    *reinterpret_cast<U*>(x + i * kLanes) = v[i];
  }
  V sum = seen ? v[kLast] : V{};
#pragma GCC unroll 16
  for (int i = 0; i < kLast; ++i) sum += v[i];
  return 1.0F / FoldLanes<float>(sum, [](auto a, auto b) { return a + b; });
}

// Makes of a row the exponentials that SoftmaxRow divides by their sum, and gives the factor that
// does so. The row has room for `padded` elements, n rounded up to whole vectors.
template <typename T>
T MakeNumerators(T* x, int64_t n, int64_t padded) {
  constexpr int kMostVectors = kVectorBytes == 64 ? 16 : 6;
  if (n == 0) return T{1};
  if constexpr (std::is_same_v<T, float>) {
    const int64_t vectors = padded / VectorOf<float>::kLanes;
    if (vectors <= kMostVectors) {
      float factor = 0;
      gemm_internal::WithCount<kMostVectors>(
          vectors, [&]<int kVectors>() { factor = NumeratorsInRegisters<kVectors>(x, n); });
      return factor;
    }
  }
  FillPadding(x, n, padded, -std::numeric_limits<T>::infinity());
  const T max = RowMax(x, padded);
  for (int64_t i = 0; i < padded; ++i) {
    x[i] = ExpInRange(x[i] - max < kLowest<T> ? kLowest<T> : x[i] - max);
  }
  FillPadding(x, n, padded, T{0});
  return T{1} / RowSum(x, padded);
}

// Columns [begin, end) of a length x inner matrix; vectors run along the columns.
template <typename T, bool kLog>
void SoftmaxColumns(const T* x, int64_t length, int64_t inner, int64_t begin, int64_t end, T* y) {
  constexpr int64_t kBlock = 64;
  T max[kBlock];
  T sum[kBlock];
  for (int64_t j = begin; j < end; j += kBlock) {
    const int64_t width = std::min(kBlock, end - j);
    std::copy_n(x + j, width, max);
    std::fill_n(sum, width, T{0});
    for (int64_t k = 1; k < length; ++k) {
      const T* row = x + k * inner + j;
      for (int64_t i = 0; i < width; ++i) max[i] = row[i] > max[i] ? row[i] : max[i];
    }
    for (int64_t k = 0; k < length; ++k) {
      const T* from = x + k * inner + j;
      T* to = y + k * inner + j;
      for (int64_t i = 0; i < width; ++i) {
        const T shifted = from[i] - max[i] < kLowest<T> ? kLowest<T> : from[i] - max[i];
        const T e = ExpInRange(shifted);
        to[i] = kLog ? shifted : e;
        sum[i] += e;
      }
    }
    for (int64_t i = 0; i < width; ++i) sum[i] = kLog ? Log(sum[i]) : T{1} / sum[i];
    for (int64_t k = 0; k < length; ++k) {
      T* to = y + k * inner + j;
      for (int64_t i = 0; i < width; ++i) to[i] = kLog ? to[i] - sum[i] : to[i] * sum[i];
    }
  }
}

// Rows up to so many elements are too short for vectors.
inline constexpr int64_t kShortRow = 16;

// Rows of n <= kShortRow elements, as columns of a block at a time.
template <typename T, bool kLog>
void SoftmaxShortRows(const T* x, int64_t n, int64_t rows, T* y) {
  constexpr int64_t kBlock = 64;
  T columns[kShortRow * kBlock];
  for (int64_t begin = 0; begin < rows; begin += kBlock) {
    const int64_t count = std::min(kBlock, rows - begin);
    TransposeMatrix(x + begin * n, n, columns, count, count, n);
    SoftmaxColumns<T, kLog>(columns, n, count, 0, count, columns);
    TransposeMatrix(columns, count, y + begin * n, n, n, count);
  }
}

}  // namespace softmax

// y = softmax, or its logarithm, of x along `axis`; both may be the same memory. Shifted logits are
// clipped at -64, as Paddle's CPU kernels do. REQUIRES: an axis of the tensor.
template <typename T, bool kLog>
void RunSoftmax(int num_threads, const Tensor& tensor, int64_t axis, T* y) {
  if (tensor.numel() == 0) return;
  const softmax::Slices slices = softmax::SliceAlong(tensor, axis);
  const T* const x = tensor.data<T>();
  constexpr int64_t kGrain = 4 * 1024;  // elements: an exponential costs more than a copy
  const int64_t grain = GrainFor(slices.length, kGrain);
  const int64_t block = slices.length * slices.inner;
  ParallelFor(num_threads, slices.outer * slices.inner, grain, [=](int64_t begin, int64_t end) {
    if (slices.inner == 1 && slices.length <= softmax::kShortRow) {
      const int64_t at = begin * slices.length;
      softmax::SoftmaxShortRows<T, kLog>(x + at, slices.length, end - begin, y + at);
      return;
    }
    while (begin < end) {
      const int64_t o = begin / slices.inner;
      const int64_t stop = std::min(end, (o + 1) * slices.inner);
      if (slices.inner == 1) {
        softmax::SoftmaxRow<T, kLog>(x + o * block, slices.length, y + o * block);
      } else {
        softmax::SoftmaxColumns<T, kLog>(x + o * block, slices.length, slices.inner,
                                         begin - o * slices.inner, stop - o * slices.inner,
                                         y + o * block);
      }
      begin = stop;
    }
  });
}

}  // namespace interp::nn
