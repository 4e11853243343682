// Rows of floats as bfloat16.
#pragma once

#include <cstdint>

#include "core/float16.h"

namespace interp {

// out[i] = bfloat16(x[i]) for i in [0, n), the same bits. `out` does not overlap `x`.
void ToBfloat16Row(const float* x, bfloat16* out, int64_t n);

}  // namespace interp
