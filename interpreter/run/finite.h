// HasOnlyFinite: what --check-nan-inf asks of a tensor.
#pragma once

#include "core/tensor.h"

namespace interp {

// Whether no element of a floating tensor in host memory is a NaN or an infinity. True for other
// dtypes and for a tensor without memory.
bool HasOnlyFinite(const Tensor& tensor);

}  // namespace interp
