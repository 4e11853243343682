#pragma once

#include "passes/pass.h"

namespace interp {

// What it makes.
inline constexpr absl::string_view kFusedConv2d = "fused_conv2d";

// Joins a convolution and what follows it into one fused_conv2d.
//
//   conv2d(Input=x, Filter=w) -> (Output=a)
//   elementwise_add(X=a, Y=b) -> (Out=c) {axis=1}
//   batch_norm(X=c, ...) -> (Y=d, ...) {is_test=true}
//   elementwise_add(X=d, Y=r) -> (Out=e)
//   relu(X=e) -> (Out=y)
// becomes
//   fused_conv2d(Input=x, Filter=w, Bias=b, ResidualData=r, BnScale=..., BnBias=..., BnMean=...,
//                BnVariance=...) -> (Output=y) {the attributes of conv2d, epsilon=1e-05,
//                fuse_residual=true, fuse_activation="relu", fuse_alpha=0.0, fuse_beta=0.0}
//
// The bias may come through a reshape2 to [1, channels, 1, 1], as paddle.nn writes it; that goes,
// too, if nothing else reads its result. Behind the batch norm and behind the activation
// there may be an elementwise_mul and an elementwise_add of a parameter of one element each, which
// become PreScale, PreShift, PostScale and PostShift. Starts at conv2d and depthwise_conv2d; each
// step is optional, the order is fixed, and at least one must be there. A conv2d_transpose takes
// bias, batch norm and activation and becomes a fused_conv2d_transpose. Conditions:
//   - every intermediate variable has one writer and one reader, and is not fetched;
//   - filter, bias and batch norm state are parameters that no op changes, or made of such alone,
//     bias and state one value for each channel; the batch norm uses its global statistics;
//   - the residual has the shape of the convolution in every run: both follow from the same dims
//     (symbolic_shapes.h);
//   - the activation is one of MatchActivation (fusion.h);
//   - the fused op is registered and has a kernel for the dtype;
//   - on CUDA, whose kernel folds nothing into the filter, batch norms and factors stay.
// The fused op stands where the last op stood. Linear time.
absl::StatusOr<Program> FuseConv(Program program, const PassContext& context);

}  // namespace interp
