// Convolution as a product of matrices (gemm.h): of the inputs that each output pixel's window
// sees, a row each, and the filter.
//
// It is for images of few pixels and many channels, as the late stages of classifiers have, whose
// filters come from beyond the L2 cache in each run: our product fetches the next panel of the
// filter while it multiplies with one, where oneDNN's kernels wait.
//
// It computes cases of one group. What lies beside an image is multiplied by zeros, so NaN and
// infinity of a filter reach results whose windows stick out.
#pragma once

#include "kernels/conv/conv_methods.h"

namespace interp::nn {

extern const ConvMethod kConvProduct;

}  // namespace interp::nn
