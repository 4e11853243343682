// ScalarBytes: one value in the representation of a dtype that is known only at run time, for ops
// that fill memory.
#pragma once

#include <array>
#include <cstddef>

#include "core/op_context.h"

namespace interp {

struct ScalarBytes {
  alignas(16) std::array<std::byte, 16> bytes = {};  // the first SizeOf(dtype) count
};

// `value` as one element of `dtype`. Fractions are cut off and integers wrap around, as in C; NaN
// and values beyond int64 become the nearest int64 first (NaN: 0).
ScalarBytes ToScalarBytes(DType dtype, double value);
ScalarBytes ToScalarBytes(DType dtype, int64_t value);

// The first element of `tensor` converted to `dtype`. REQUIRES: it has memory and an element.
// Error when the tensor is complex.
absl::StatusOr<ScalarBytes> FirstElementAs(DType dtype, const Tensor& tensor);

// The number in input `slot`, host memory, as one element of `dtype`; `attr` where the op has no
// such input. InvalidArgument unless it is one real number.
absl::StatusOr<ScalarBytes> ReadScalar(const OpContext& ctx, int slot, absl::string_view name,
                                       DType dtype, const ScalarBytes& attr);
absl::StatusOr<float> ReadFloat(const OpContext& ctx, int slot, absl::string_view name, float attr);

}  // namespace interp
