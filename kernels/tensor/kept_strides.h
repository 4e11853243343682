// Where the elements of a slice lie that has dropped dimensions of length 1.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {

// The strides of `out` along the `rank` dimensions there were before it dropped `dropped`; 0 along
// those. Its own order counts: of rank 5, an image may become one of rank 4, whose channels are
// another dimension.
inline absl::StatusOr<Strides> StridesWithDropped(const Tensor& out, int rank,
                                                  absl::Span<const int64_t> dropped) {
  std::array<bool, kMaxRank> gone = {};
  for (const int64_t entry : dropped) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(entry, rank, "decrease_axis"));
    gone[axis] = true;
  }
  const Strides own = StridesOf(out);
  Strides strides = {};
  for (int i = 0, kept = 0; i < rank; ++i) {
    if (!gone[i]) strides[i] = own[kept++];
  }
  return strides;
}

}  // namespace interp
