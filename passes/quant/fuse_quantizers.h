#pragma once

#include "passes/pass.h"

namespace interp {

// Joins a quantize_linear and the dequantize_linear that alone reads it, of one constant scale.
//
//   quantize_linear(X=x, Scale=s) -> (Y=a) {quant_axis=-1, bit_length=8}
//   dequantize_linear(X=a, Scale=s) -> (Y=y) {quant_axis=-1, bit_length=8}
// becomes
//   fake_quantize_dequantize_moving_average_abs_max(X=x, InScale=s) -> (Out=y)
//       {bit_length=8, round_type=0, is_test=true}
//
// The bits are the same, and memory is gone through once. Comes behind the pass `int8`, which takes
// pairs apart. Linear time.
absl::StatusOr<Program> FuseQuantizers(Program program, const PassContext& context);

}  // namespace interp
