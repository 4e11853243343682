// Convolution with few output channels, as those that end in an image or a map have: 9x9 64>3.
//
// Direct kernels give a vector to the output channels and leave most of it empty. Here the columns
// of a matrix product are the taps and output channels together:
//
//   taps[x, (ky, kx, o)] = sum_i in[y, x, i] * filter[o, i, ky, kx]     for each row y of the input
//
// and an output is the sum of what the taps of its window give ("kn2row": Vasudevan, Anderson,
// Gregg, "Parallel Multi Channel Convolution using General Matrix Multiplication", 2017).
//
// It computes cases of two axes, one group and at most 8 output channels.
#pragma once

#include "kernels/conv/conv_methods.h"

namespace interp::nn {

extern const ConvMethod kConvFewOutputs;

}  // namespace interp::nn
