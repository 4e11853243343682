// The bounds of a slice, axis by axis, as slice, strided_slice and set_value say them.
#pragma once

#include <array>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {

// What is taken along one axis, as the program says it: not clipped, and negative where it counts
// from the end.
struct SliceBound {
  int axis = 0;  // from the front
  int64_t start = 0;
  int64_t end = 0;
  int64_t step = 1;
  bool dropped = false;  // the result lacks the axis
};
using SliceBounds = absl::InlinedVector<SliceBound, kMaxRank>;

// One list of a slice's: where tensors hold it, and the attribute that does so otherwise.
struct SliceList {
  IntSlots slots;
  absl::Span<const int64_t> attr;
};

// Reads starts, ends and, where there are steps, those. `axes` and `dropped` name axes of something
// of that rank. InvalidArgument for another number of values than of axes.
inline absl::StatusOr<SliceBounds> ReadSliceBounds(const OpContext& ctx,
                                                   absl::Span<const int64_t> axes,
                                                   absl::Span<const int64_t> dropped, int rank,
                                                   absl::Span<const SliceList> lists) {
  std::array<IntList, 3> values;
  for (size_t k = 0; k < lists.size(); ++k) {
    INTERP_ASSIGN_OR_RETURN(values[k], ReadIntList(ctx, lists[k].slots, lists[k].attr));
    if (values[k].size() != axes.size()) {
      return InvalidArgument("'", lists[k].slots.name, "' has ", values[k].size(),
                             " values, expected one for each of ", axes.size(), " axes");
    }
  }
  SliceBounds bounds;
  for (size_t i = 0; i < axes.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axes[i], rank, "axes"));
    bounds.push_back({.axis = axis,
                      .start = values[0][i],
                      .end = values[1][i],
                      .step = lists.size() < 3 ? 1 : values[2][i],
                      .dropped = absl::c_linear_search(dropped, axes[i])});
  }
  return bounds;
}

}  // namespace interp
