// Walk: where operands that repeat some dimensions of a tensor have the element for each of its
// elements. Included by `.cu` files alone.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "kernels/cuda/divisor.h"

namespace interp::cuda {

// Dimensions of a tensor, last first, and how far apart each operand has their elements; 0 where it
// is repeated. Neighbours that all operands walk alike are one dimension.
template <int kOperands>
struct Walk {
  static constexpr int kMaxDims = 6;

  int num_dims = 0;
  Divisor divisors[kMaxDims];
  int64_t steps[kOperands][kMaxDims] = {};
  int64_t size = 1;         // elements
  int64_t last_length = 1;  // of the dimension added last
  bool overflows = false;   // more dimensions than there is room for

  // Adds a dimension in front of those that are there. Of the host.
  void Add(int64_t length, const int64_t (&step)[kOperands]) {
    size *= length;
    if (length == 1) return;
    bool merges = num_dims > 0;
    for (int k = 0; merges && k < kOperands; ++k) {
      merges = steps[k][num_dims - 1] * last_length == step[k];
    }
    if (!merges && num_dims == kMaxDims) {
      overflows = true;
      return;
    }
    if (!merges) {
      for (int k = 0; k < kOperands; ++k) steps[k][num_dims] = step[k];
      ++num_dims;
      last_length = 1;
    }
    last_length *= length;
    if (last_length > 0 && last_length <= kMostElements) {
      divisors[num_dims - 1] = Divisor(static_cast<uint32_t>(last_length));
    }
  }

  // Unimplemented where kernels could not walk it.
  absl::Status Check(absl::string_view what) const {
    if (overflows) return Unimplemented(what, " over more than ", kMaxDims, " kinds of dimensions");
    if (num_dims <= 1 || size <= kMostElements) return absl::OkStatus();
    return Unimplemented(what, " over ", size, " elements, expected at most ", kMostElements);
  }

  // The operands' offsets for an element.
  __device__ void Find(int64_t index, int64_t (&offsets)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offsets[k] = num_dims == 1 ? index * steps[k][0] : 0;
    if (num_dims <= 1) return;
    auto left = static_cast<uint32_t>(index);
    for (int d = 0; d < num_dims; ++d) {
      const uint32_t at = divisors[d].Split(left);
      for (int k = 0; k < kOperands; ++k) offsets[k] += at * steps[k][d];
    }
  }
};

}  // namespace interp::cuda
