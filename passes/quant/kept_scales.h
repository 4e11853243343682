// Scales and states that ops of quantisation-aware training list as outputs and leave as they are.
#pragma once

#include "core/program.h"
#include "core/status.h"

namespace interp {

// Takes persistable variables from the outputs of ops that do not write them:
//
//   moving_average_abs_max_scale(X=x) -> (Out=y, OutScale=s) {is_test=true}
//   fake_channel_wise_quantize_abs_max(X=w) -> (Out=q, OutScale=c) {is_test=true}
//
// becomes, as the second one takes the scales that training has left,
//
//   moving_average_abs_max_scale(X=x) -> (Out=y) {is_test=true}
//   fake_channel_wise_quantize_abs_max(X=w, InScale=c) -> (Out=q) {is_test=true}
//
// Others with is_test keep all but their result. Without it quantize_linear with a quant_axis
// writes no OutState and OutAccum; dequantize_linear never writes any. Outputs that are not
// persistable stay, and have the scale. Runs before VerifyProgram. InvalidArgument where
// VerifyStructure finds something. Linear time.
absl::StatusOr<Program> KeepScales(Program program);

}  // namespace interp
