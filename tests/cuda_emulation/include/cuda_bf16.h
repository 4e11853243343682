// __nv_bfloat16 as far as interp uses it; see cuda_runtime.h.
#pragma once

#include "core/float16.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
using __nv_bfloat16 = interp::bfloat16;
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {value}; }
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
