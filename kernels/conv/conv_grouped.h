// Convolution in groups smaller than a vector, as ResNeXt has: 3x3 of 4 channels each.
//
// The lanes of a vector are the output channels of several groups, and a tile of pixels stays in
// registers. Direct kernels want a group to be whole vectors; oneDNN goes through smaller ones as
// products of copied windows, at a tenth of the speed.
//
// It computes cases of two axes, groups of 2, 4 or 8 input and output channels, and whole vectors
// of them; all of them pay.
#pragma once

#include "kernels/conv/conv_methods.h"

namespace interp::nn {

extern const ConvMethod kConvGrouped;

}  // namespace interp::nn
