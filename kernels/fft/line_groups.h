// Lines of tensors in groups, an element of another line in each lane: which there are, and how
// they are loaded and stored.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/shape.h"
#include "kernels/fft/lanes.h"
#include "kernels/util/transpose_plane.h"

namespace interp::fft {

// The lines of a plain tensor along one axis, `step` elements from one of a line to the next.
class LineStarts {
 public:
  // Of dimension `limited`, unless it is `axis`, only the first `limit` indices.
  LineStarts(const Shape& shape, int axis, int limited, int64_t limit) {
    int64_t stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (d == axis) {
        step_ = stride;
      } else {
        dims_.push_back({d == limited ? limit : shape[d], stride});
        count_ *= dims_.back().length;
      }
      stride *= shape[d];
    }
  }
  LineStarts(const Shape& shape, int axis) : LineStarts(shape, axis, axis, 0) {}

  int64_t count() const { return count_; }
  int64_t step() const { return step_; }
  int64_t Start(int64_t index) const {
    int64_t start = 0;
    for (const Dim& dim : dims_) {
      start += index % dim.length * dim.stride;
      index /= dim.length;
    }
    return start;
  }

 private:
  struct Dim {
    int64_t length;
    int64_t stride;
  };
  absl::InlinedVector<Dim, 6> dims_;  // the last dimension first
  int64_t count_ = 1;
  int64_t step_ = 1;
};

template <typename V>
struct ElementOf {
  using Type = V;
  static constexpr int kLanes = 1;
};
template <>
struct ElementOf<VectorOf<float>::type> {
  using Type = float;
  static constexpr int kLanes = VectorOf<float>::kLanes;
};
template <>
struct ElementOf<VectorOf<double>::type> {
  using Type = double;
  static constexpr int kLanes = VectorOf<double>::kLanes;
};

// Up to kLanes lines that follow one another.
template <int kLanes>
class LineGroup {
 public:
  LineGroup(const LineStarts& lines, int64_t first)
      : lanes_(static_cast<int>(std::min<int64_t>(kLanes, lines.count() - first))),
        step_(lines.step()) {
    for (int lane = 0; lane < lanes_; ++lane) starts_[lane] = lines.Start(first + lane);
    const int64_t distance = lanes_ > 1 ? starts_[1] - starts_[0] : 1;
    bool even = true;
    for (int lane = 1; lane < lanes_; ++lane) {
      even = even && starts_[lane] - starts_[lane - 1] == distance;
    }
    dense_ = even && distance == 1 && lanes_ == kLanes;
    if (even && step_ == 1) row_distance_ = distance;
  }

  // Rows of kLanes elements, `step` apart.
  template <typename E>
  struct Rows {
    E* first;
    int64_t step;
    E* operator[](int64_t row) const { return first + row * step; }
  };

  // The first n elements of each line, in place or copied to `block`, which holds n * kLanes.
  template <typename E>
  Rows<const E> Load(const E* from, int64_t n, E* block) const {
    if (dense_) return {from + starts_[0], step_};
    if (lanes_ < kLanes) std::fill_n(block, n * kLanes, E(0));
    if (row_distance_ != 0) {
      TransposeMatrix(from + starts_[0], row_distance_, block, kLanes, lanes_, n);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        for (int lane = 0; lane < lanes_; ++lane) {
          block[i * kLanes + lane] = from[starts_[lane] + i * step_];
        }
      }
    }
    return {block, kLanes};
  }

  // Where to write elements before Store: their places, or `block`.
  template <typename E>
  Rows<E> Target(E* to, E* block) const {
    if (dense_) return {to + starts_[0], step_};
    return {block, kLanes};
  }
  // Takes n elements of each line from `block` to their places, where they are not yet.
  template <typename E>
  void Store(const E* block, int64_t n, E* to) const {
    if (dense_) return;
    if (row_distance_ != 0) {
      return TransposeMatrix(block, kLanes, to + starts_[0], row_distance_, n, lanes_);
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int lane = 0; lane < lanes_; ++lane) {
        to[starts_[lane] + i * step_] = block[i * kLanes + lane];
      }
    }
  }

 private:
  int lanes_;
  int64_t step_;
  int64_t starts_[kLanes];
  bool dense_ = false;
  int64_t row_distance_ = 0;  // of lines whose elements follow one another, if all are as far apart
};

template <typename V, typename T>
inline V LoadLanes(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <typename V, typename T>
inline void StoreLanes(const V& v, T* to) {
  std::memcpy(to, &v, sizeof(V));
}

namespace line_groups_internal {

template <bool kOdd, typename V, int... kLane>
inline V Unzip(V a, V b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (2 * kLane + (kOdd ? 1 : 0))...);
}
template <bool kUpper, typename V, int... kLane>
inline V Zip(V a, V b, std::integer_sequence<int, kLane...>) {
  constexpr int n = sizeof...(kLane);
  return __builtin_shufflevector(a, b,
                                 ((kUpper ? n / 2 : 0) + kLane / 2 + (kLane % 2 == 1 ? n : 0))...);
}

}  // namespace line_groups_internal

// A row of complex numbers.
template <typename V, typename T>
inline Pair<V> LoadPairs(const std::complex<T>* from) {
  const T* const numbers = reinterpret_cast<const T*>(from);
  constexpr int kLanes = ElementOf<V>::kLanes;
  const V a = LoadLanes<V>(numbers);
  const V b = LoadLanes<V>(numbers + kLanes);
  if constexpr (kLanes == 1) {
    return {a, b};
  } else {
    using line_groups_internal::Unzip;
    constexpr auto kSequence = std::make_integer_sequence<int, kLanes>();
    return {Unzip<false>(a, b, kSequence), Unzip<true>(a, b, kSequence)};
  }
}
template <typename V, typename T>
inline void StorePairs(const Pair<V>& x, std::complex<T>* to) {
  T* const numbers = reinterpret_cast<T*>(to);
  constexpr int kLanes = ElementOf<V>::kLanes;
  if constexpr (kLanes == 1) {
    numbers[0] = x.re;
    numbers[1] = x.im;
  } else {
    using line_groups_internal::Zip;
    constexpr auto kSequence = std::make_integer_sequence<int, kLanes>();
    StoreLanes(Zip<false>(x.re, x.im, kSequence), numbers);
    StoreLanes(Zip<true>(x.re, x.im, kSequence), numbers + kLanes);
  }
}

}  // namespace interp::fft
