// ReduceParts: the values of several ranks made one, element by element.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "core/status.h"

namespace interp {

enum class ReduceKind : int8_t { kSum, kMax, kMin, kProd };

// "sum", "max", "min", "prod"
absl::string_view Name(ReduceKind kind);

// Unimplemented for dtypes that have no such values: the largest complex number, sums of float8.
absl::Status CheckReducible(DType dtype, ReduceKind kind);

// out[i] = parts[0][i] op parts[1][i] op ..., always in this order: the same bits however elements
// are cut into pieces. 16-bit floats are computed in float and rounded once; integers wrap around;
// sum and max of bools mean or, product and min mean and; a NaN wins in max and min. `out` may be
// one of the parts. REQUIRES: CheckReducible; at least one part.
void ReduceParts(DType dtype, ReduceKind kind, const std::vector<const void*>& parts, int64_t count,
                 void* out);

}  // namespace interp
