// Which part of a tensor set_value writes, and how a value lies in it; shared with its gradient.
#pragma once

#include "absl/container/inlined_vector.h"
#include "core/op_def.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp::set_value {

// The attributes that say where.
struct PartAttrs {
  IntList axes;
  IntList starts;
  IntList ends;
  IntList steps;
  IntList decrease_axes;
  IntList none_axes;
};
PartAttrs ReadPartAttrs(AttrReader& reader);

// The part of a dimension that is written: `count` indices, `step` apart, ascending.
struct Range {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
  bool reversed = false;  // the value runs from the last index to the first
};
using Ranges = absl::InlinedVector<Range, kMaxRank>;

// Slots of the lists that win over the attributes.
struct PartSlots {
  int starts = -1;
  int ends = -1;
  int steps = -1;
};

// What is written of a tensor of shape `shape`: by dimension.
absl::StatusOr<Ranges> ResolveRanges(const OpContext& ctx, const PartSlots& slots,
                                     const PartAttrs& attrs, const Shape& shape);

// Whether a dimension has nothing to write.
bool IsEmpty(const Ranges& ranges);

// A value of some shape beside the part that it is broadcast to.
struct Part {
  CopyDims dims;            // the value is the source
  int64_t value_start = 0;  // of the first element that is copied
  int64_t start = 0;        // of the part in the tensor
};
// InvalidArgument when the value does not fit. Leading dimensions of length 1 do not count.
absl::StatusOr<Part> LayOut(const PartAttrs& attrs, const Ranges& ranges, const Strides& strides,
                            const Shape& value);

}  // namespace interp::set_value
