// The shapes of tensors whose elements stay as they are: InvalidArgument for dims that do not fit.
#pragma once

#include "absl/types/span.h"
#include "core/shape.h"
#include "core/status.h"

namespace interp {

// `x` without the dimensions `axes` that have length 1; without `axes`, all such dimensions go.
absl::StatusOr<Shape> Squeezed(const Shape& x, absl::Span<const int64_t> axes);

// `x` with dimensions of length 1 inserted at `axes`, one after the other.
absl::StatusOr<Shape> Unsqueezed(const Shape& x, absl::Span<const int64_t> axes);

// `dims` for the elements of `x`, where 0 keeps the dimension of `x` at that place and one -1 takes
// what is left.
absl::StatusOr<Shape> Reshaped(const Shape& x, absl::Span<const int64_t> dims);

}  // namespace interp
