// Coordinates in the last dimension of an index tensor; shared by gather_nd, scatter_nd_add and
// their gradients.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Shape of what Index addresses: its leading dimensions, then the rest of X.
inline absl::StatusOr<Shape> AddressedShape(const Shape& x, const Shape& index) {
  if (index.rank() == 0 || index.back() > x.rank()) {
    return InvalidArgument("'Index' has shape ", ToString(index),
                           ", expected at most the rank of 'X' ", ToString(x),
                           " as last dimension");
  }
  const int depth = static_cast<int>(index.back());
  if (index.rank() - 1 + x.rank() - depth > kMaxRank) {
    return InvalidArgument("'Index' of shape ", ToString(index), " into 'X' of shape ", ToString(x),
                           " gives more than ", kMaxRank, " dims");
  }
  Shape shape;
  for (int i = 0; i < index.rank() - 1; ++i) shape.push_back(index[i]);
  for (int i = depth; i < x.rank(); ++i) shape.push_back(x[i]);
  return shape;
}

// Calls visit(n, row) for the n-th coordinate tuple, where `row` counts the slices of X that tuples
// address. Error at the first coordinate that is out of range.
template <typename Index, typename Visit>
absl::Status ForEachTuple(const Shape& x, const Tensor& index, const Index* values,
                          const Visit& visit) {
  const int depth = static_cast<int>(index.shape.back());
  const int64_t count = index.shape.numel(0, index.shape.rank() - 1);
  for (int64_t n = 0; n < count; ++n, values += depth) {
    int64_t row = 0;
    for (int d = 0; d < depth; ++d) {
      const int64_t value = values[d];
      if (value < 0 || value >= x[d]) {
        return InvalidArgument("'Index' has the value ", value, " for dimension ", d, " of 'X' ",
                               ToString(x));
      }
      row = row * x[d] + value;
    }
    visit(n, row);
  }
  return absl::OkStatus();
}

}  // namespace interp
