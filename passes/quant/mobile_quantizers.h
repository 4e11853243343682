// Quantizers of programs that Paddle's TransformForMobilePass has written for Paddle-Mobile.
#pragma once

#include "core/program.h"

namespace interp {

// Gives those the names back that the pass has taken from them: it calls each fake_quantize_.. and
// fake_dequantize_.. op of a frozen program `quantize` or `dequantize`, as oneDNN's ops are called,
// and keeps slots and attributes. By these:
//
//   quantize(X, InScale) {is_test}      fake_quantize_moving_average_abs_max
//   dequantize(X, Scales)               fake_channel_wise_dequantize_max_abs
//
// fake_quantize_range_abs_max computes in test mode what the first of them does. Those by the scale
// of the moment have rows of their own as quantize and dequantize. For programs as they were
// loaded.
void NameMobileQuantizers(Program& program);

}  // namespace interp
