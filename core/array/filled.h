// Arrays of one value.
#pragma once

#include "core/array/array.h"

namespace interp {

// A new array at `place` with `value` everywhere. Unimplemented for what is not floating.
absl::StatusOr<Array> Filled(ArrayRuntime& runtime, const Shape& shape, DType dtype, double value,
                             Place place);

}  // namespace interp
