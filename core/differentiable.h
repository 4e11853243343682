// Which values may have gradients.
#pragma once

#include "core/dtype.h"

namespace interp {

// Real and complex floats may.
inline bool IsDifferentiable(DType dtype) { return IsFloating(dtype) || IsComplex(dtype); }

}  // namespace interp
