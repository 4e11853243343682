// A diagonal of two dimensions of a tensor: where it starts, and the copies from and to it.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "core/op_def.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {

struct DiagonalAttrs {
  int64_t offset = 0;
  int64_t axis1 = 0;
  int64_t axis2 = 1;
};

inline DiagonalAttrs ReadDiagonalAttrs(AttrReader& reader) {
  // Before Paddle 2.0 trace has the axes as `dim1` and `dim2`.
  return {reader.Int("offset", 0), reader.Int(reader.Has("axis1") ? "axis1" : "dim1", 0),
          reader.Int(reader.Has("axis2") ? "axis2" : "dim2", 1)};
}

struct Diagonal {
  int row = 0;  // the dimensions that it runs along
  int column = 1;
  int64_t length = 0;
  int64_t first_row = 0;
  int64_t first_column = 0;
};

// Element i of the diagonal is at row i, column i + offset, or row i - offset, column i.
inline absl::StatusOr<Diagonal> FindDiagonal(const DiagonalAttrs& attrs, const Shape& shape) {
  Diagonal diagonal;
  INTERP_ASSIGN_OR_RETURN(diagonal.row, ResolveAxis(attrs.axis1, shape.rank(), "axis1"));
  INTERP_ASSIGN_OR_RETURN(diagonal.column, ResolveAxis(attrs.axis2, shape.rank(), "axis2"));
  if (diagonal.row == diagonal.column) {
    return InvalidArgument("'axis1' and 'axis2' are both ", diagonal.row, " of ", ToString(shape));
  }
  // No dim is longer, and what is less can be negated.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t offset = std::clamp(attrs.offset, -kMost, kMost);
  diagonal.first_row = std::max<int64_t>(-offset, 0);
  diagonal.first_column = std::max<int64_t>(offset, 0);
  diagonal.length = std::max<int64_t>(std::min(shape[diagonal.row] - diagonal.first_row,
                                               shape[diagonal.column] - diagonal.first_column),
                                      0);
  return diagonal;
}

// The shape of the diagonals: the other dimensions, then the diagonal.
inline Shape DiagonalShape(const Diagonal& diagonal, const Shape& shape) {
  Shape result;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d != diagonal.row && d != diagonal.column) result.push_back(shape[d]);
  }
  result.push_back(diagonal.length);
  return result;
}

// The element of the tensor that its diagonals start with.
inline int64_t DiagonalStart(const Diagonal& diagonal, const Strides& strides) {
  return diagonal.first_row * strides[diagonal.row] +
         diagonal.first_column * strides[diagonal.column];
}

// Loops over the diagonals: `src` in the tensor, from DiagonalStart on, `dst` in a tensor of
// DiagonalShape.
inline CopyDims DiagonalDims(const Diagonal& diagonal, const Shape& shape) {
  const Strides strides = StridesOf(shape, Layout::kPlain);
  const Strides to = StridesOf(DiagonalShape(diagonal, shape), Layout::kPlain);
  CopyDims dims;
  int at = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d == diagonal.row || d == diagonal.column) continue;
    dims.push_back({shape[d], strides[d], to[at++]});
  }
  dims.push_back({diagonal.length, strides[diagonal.row] + strides[diagonal.column], to[at]});
  return dims;
}

// Copies the diagonals of `tensor` to `out`, of DiagonalShape.
inline void ReadDiagonals(int num_threads, const Diagonal& diagonal, const Tensor& tensor,
                          void* out) {
  if (diagonal.length == 0 || tensor.numel() == 0) return;
  const size_t bytes = SizeOf(tensor.dtype);
  const int64_t start = DiagonalStart(diagonal, StridesOf(tensor));
  CopyStrided(num_threads, bytes, DiagonalDims(diagonal, tensor.shape),
              At(tensor.raw_data(), start, bytes), out);
}

// What is written to diagonals: a value for each element, one for each diagonal, or one for all.
enum class DiagonalSource : uint8_t { kFull, kOneEach, kOne };

// Copies `values` to the diagonals of `tensor`.
inline void WriteDiagonals(int num_threads, const Diagonal& diagonal, DiagonalSource source,
                           const void* values, Tensor& tensor) {
  if (diagonal.length == 0 || tensor.numel() == 0) return;
  const size_t bytes = SizeOf(tensor.dtype);
  const int64_t start = DiagonalStart(diagonal, StridesOf(tensor));
  CopyDims dims = DiagonalDims(diagonal, tensor.shape);
  for (size_t d = 0; d < dims.size(); ++d) {
    std::swap(dims[d].src_stride, dims[d].dst_stride);
    const bool last = d + 1 == dims.size();
    if (source == DiagonalSource::kOne || (source == DiagonalSource::kOneEach && last)) {
      dims[d].src_stride = 0;
    } else if (source == DiagonalSource::kOneEach) {
      dims[d].src_stride /= diagonal.length;
    }
  }
  CopyStrided(num_threads, bytes, dims, values, At(tensor.mutable_raw_data(), start, bytes));
}

}  // namespace interp
