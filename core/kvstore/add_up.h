// The sum of what is pushed to one key, whatever places it lies on.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/array/array.h"

namespace interp {

// The array itself if it lies at `place`, else a copy there.
absl::StatusOr<Array> MoveTo(const Array& array, Place place, int32_t priority);

// The sum of dense arrays of one shape and dtype, at `home`, as the tree of SumArraysDef. On the
// way a partial sum lies where one of its parts does, at home if one does. A single array at home
// is returned itself. Pushes operations.
absl::StatusOr<Array> AddUp(absl::Span<const Array> values, Place home, int32_t priority);

// Of arrays of rows: one with the rows of all, in order.
absl::StatusOr<Array> JoinRows(absl::Span<const Array> values, int32_t priority);

}  // namespace interp
