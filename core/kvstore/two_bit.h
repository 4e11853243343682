// Gradients in two bits a value, with what that leaves fed back. (MXNet's gradient compression,
// src/kvstore/gradient_compression-inl.h.)
#pragma once

#include "core/array/array.h"
#include "core/op_def.h"

namespace interp {

// Grad, Residual -> Codes, ResidualOut, for float32. Residual + Grad is sent as +threshold where it
// is at least that, as -threshold where it is at most that, else not; ResidualOut is the rest.
// InvalidArgument for a value that is not finite, of which the rest would be none for ever. Codes
// are bytes of four values each, the first in the highest bits: 3 for +, 2 for -, 0. In no
// registry.
const OpDef& CompressDef();

// Pushes what lets a residual begin anew at zero where a gradient that failed has spoilt it, which
// is known only when all that was pushed before is done.
absl::Status RenewIfSpoilt(const Array& residual, int32_t priority);

// Codes -> Out: the values that they stand for, of the attribute `shape`.
const OpDef& DecompressDef();

// The values that an array of codes stands for, where it lies.
absl::StatusOr<Array> ValuesOfCodes(const Array& codes, const Shape& shape, float threshold,
                                    int32_t priority);
// That of the codes of values of that shape.
Shape ShapeOfCodes(const Shape& shape);

}  // namespace interp
