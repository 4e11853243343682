// The slices of sequences that sequence_slice takes; the same for its gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/sequence/lod.h"

namespace interp {

// Offsets of the sequences that are left when each sequence of `x` keeps `lengths` rows from row
// `starts` on. InvalidArgument when there are not as many numbers as sequences, or rows.
absl::StatusOr<std::vector<int64_t>> OffsetsOfSlices(const Tensor& x, const Tensor& starts,
                                                     const Tensor& lengths);

}  // namespace interp
