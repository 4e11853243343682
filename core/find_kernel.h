// The row of an op's kernels that serves a dtype on a place.
#pragma once

#include "core/op_def.h"

namespace interp {

// The index into def.kernels: rows of the place itself go before those of the host, which `sim`
// runs too, and rows of the very dtype before those for all. Rows that do not take the attributes
// are no rows. Unimplemented lists what there is.
absl::StatusOr<int32_t> FindKernel(const OpDef& def, DType dtype, const void* attrs,
                                   PlaceKind place);

// Whether rows of some place serve the dtype.
bool HasKernel(const OpDef& def, DType dtype, const void* attrs);

}  // namespace interp
