// Where index_put writes; shared with its gradient.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/util/strided_copy.h"

namespace interp::index_put {

// The places that index tensors name together, by NumPy's rules: they are broadcast to one shape
// and name coordinates of the first dimensions of X; a mask stands for the coordinates of its true
// elements. Dimensions without an index are taken whole.
struct Places {
  std::vector<int64_t> slices;  // of X, by place; each has `slice_size` elements
  int64_t slice_size = 1;
  Shape shape;  // of what is taken or put there

  int64_t count() const { return static_cast<int64_t>(slices.size()); }
};

// InvalidArgument when an index is out of range; negative ones count from the end.
absl::StatusOr<Places> ResolvePlaces(absl::Span<const Tensor* const> indices, const Shape& x);

// A value broadcast to the shape of the places: its strides by dimension of that shape.
absl::StatusOr<Strides> BroadcastStridesTo(const Shape& places, const Shape& value);

// Calls visit(place element, value element) for all elements in order, both counted from 0.
template <typename Visit>
void ForEachElement(const Shape& shape, const Strides& value_steps, const Visit& visit) {
  std::array<int64_t, kMaxRank> at = {};
  const int64_t count = shape.numel();
  int64_t from = 0;
  for (int64_t n = 0; n < count; ++n) {
    visit(n, from);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      from += value_steps[d];
      if (++at[d] < shape[d]) break;
      from -= value_steps[d] * shape[d];
      at[d] = 0;
    }
  }
}

}  // namespace interp::index_put
