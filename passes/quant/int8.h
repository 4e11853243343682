// Int8: what programs of quantisation-aware training pretend in float32, done in int8.
#pragma once

#include "passes/pass.h"

namespace interp {

// A convolution or a product of a value on a grid and of weights on one, as the ops of
// passes/quant/quantizers.h put them there, becomes one of int8; so do the ops that bring its sums
// back:
//
//   fake_quantize_dequantize_moving_average_abs_max(X=x, InScale=s) -> (Out=a)
//   fake_channel_wise_quantize_dequantize_abs_max(X=w) -> (Out=b)
//   conv2d(Input=a, Filter=b) -> (Output=y)
//     becomes
//   quantize_int8(X=x, Scale=s) -> (Out=a.int8)
//   int8_conv2d(Input=a.int8, Filter=w, InputScale=s) -> (Output=y) {quantize_weights=true, ..}
//
// Values differ by no more than float32 rounds, except where that makes one fall on the other side
// of a tie. An activation is quantised once for all its readers; weights when they are packed. What
// others read of it, or what such an op would store as real values on a grid, is brought back:
//
//   dequantize_linear(X=a.int8, Scale=s) -> (Y=a) {quant_axis=-1, bit_length=8}
//
// Runs before the fusing passes, which join what follows.
// Errors: FailedPrecondition when there is nothing of that kind in block 0.
absl::StatusOr<Program> ComputeInInt8(Program program, const PassContext& context);

}  // namespace interp
