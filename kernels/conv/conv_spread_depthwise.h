// Depthwise convolution of windows with holes, as separable pyramids of dilations have.
//
// The lanes of a vector are channels, and taps in the padding cost nothing. oneDNN goes through
// wide windows with kernels that are not made for depthwise ones, a tenth as fast, and copies those
// that are wider than the image, a two-hundredth as fast.
//
// It computes cases of two axes with one output for each channel; those with wide windows pay.
#pragma once

#include "kernels/conv/conv_methods.h"

namespace interp::nn {

extern const ConvMethod kConvSpreadDepthwise;

}  // namespace interp::nn
