// Convolution as a sum over the taps of a window: a product each, of the pixels that the tap sees
// and its part of the filter.
//
// It is for dilated windows, as the last stages of segmentation networks have. Those of a small
// image mostly lie in the padding: of 3x3 taps 12 apart on 16x16 pixels a quarter is left. Direct
// kernels multiply by zeros there. Here each tap takes the pixels within the image alone, as they
// lie, also every other one where windows have a stride: oneDNN's kernels for AVX2 are slow there,
// and where more is padded than they compute at once.
//
// It computes cases of two axes and one group.
#pragma once

#include "kernels/conv/conv_methods.h"

namespace interp::nn {

extern const ConvMethod kConvByTap;

}  // namespace interp::nn
