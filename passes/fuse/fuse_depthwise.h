#pragma once

#include "passes/pass.h"

namespace interp {

// Joins a convolution of 1 x 1 and the depthwise one that alone reads it, so that the image between
// the two need not leave the cache (kernels/conv/pointwise_depthwise.cc).
//
//   fused_conv2d(Input=x, Filter=w, Bias=b) -> (Output=a) {fuse_activation="relu6", ...}
//   fused_conv2d(Input=a, Filter=v, BnScale=..., ...) -> (Output=y) {groups=96, strides=[2,2], ...}
// becomes
//   fused_pointwise_depthwise(Input=x, Filter=w, Bias=b, DepthwiseFilter=v, DepthwiseBnScale=...,
//                             ...) -> (Output=y) {the attributes of the first, those of the second
//                             with the prefix "depthwise_"}
//
// Conditions:
//   - both are conv2d, depthwise_conv2d or fused_conv2d of float32 without a residual, whose inputs
//     but the image are parameters that no op changes;
//   - the first has stride 1, no padding and no groups; the second a window of 3 x 3 or 5 x 5
//     without holes, a stride of 1 or 2 in both axes, and one output for each of 16 or more
//     channels;
//   - the image between has one writer and one reader, and is not fetched; what the first reads
//     does not change before the second.
// The fused op stands where the second stood. Linear time.
absl::StatusOr<Program> FuseDepthwise(Program program, const PassContext& context);

}  // namespace interp
