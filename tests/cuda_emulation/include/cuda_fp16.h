// __half as far as interp uses it; see cuda_runtime.h.
#pragma once

#include "core/float16.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
using __half = interp::float16;
inline float __half2float(__half value) { return value; }
inline __half __float2half_rn(float value) { return {value}; }
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
