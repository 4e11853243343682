// Shape: the dimensions of a tensor, in logical order (for images N, C, H, W whatever the layout).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/types/span.h"

namespace interp {

// Paddle's limit for the rank of a tensor (phi::DDim).
inline constexpr int kMaxRank = 9;

// A fixed-capacity list of dimensions. Rank 0 is a scalar with one element. -1 stands for "unknown"
// in shapes declared by a program; shapes of tensors in memory have no negative dimension.
class Shape {
 public:
  Shape() = default;
  // REQUIRES: dims.size() <= kMaxRank (files and feeds are checked where they are read).
  Shape(std::initializer_list<int64_t> dims)
      : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}
  explicit Shape(absl::Span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  // The i-th dimension counted from the end: back(1) is the last. REQUIRES: 1 <= i <= rank().
  int64_t back(int i = 1) const { return dims_[rank_ - i]; }
  absl::Span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }

  // Number of elements; 1 for rank 0. REQUIRES: CheckedNumel() has a value.
  int64_t numel() const { return numel(0, rank_); }
  // Product of the dimensions [begin, end); 1 when empty.
  int64_t numel(int begin, int end) const;
  // Number of elements, or nullopt when a dimension is negative or the product times 16 (the widest
  // element) does not fit into 63 bits.
  std::optional<int64_t> CheckedNumel() const;

  // Appends a dimension. REQUIRES: rank() < kMaxRank.
  void push_back(int64_t dim) { dims_[rank_++] = dim; }
  // Sets the rank; new dimensions are `fill`. REQUIRES: rank <= kMaxRank.
  void resize(int rank, int64_t fill = 1);

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> dims_ = {};
  int rank_ = 0;
};

// "[2,3,-1]"; "[]" for rank 0.
std::string ToString(const Shape& shape);

// Maps an axis in [-rank, rank) to [0, rank); nullopt when outside.
inline std::optional<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace interp
