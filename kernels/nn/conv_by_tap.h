// Convolution as a sum over the taps of a window: a product each, of the pixels that the tap sees
// and its part of the filter.
//
// It is for dilated windows, as the last stages of segmentation networks have. Those of a small
// image mostly lie in the padding: of 3x3 taps 12 apart on 16x16 pixels a quarter is left. Direct
// kernels multiply by zeros there. Here each tap takes the pixels within the image alone, as they
// lie, also every other one where windows have a stride: oneDNN's kernels for AVX2 are slow there,
// and where more is padded than they compute at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/nn/conv_problem.h"

namespace interp::nn {

// True where this is faster than oneDNN's kernels, given a constant filter and images of float32.
bool ConvByTapPays(const ConvProblem& problem);

// Floats of a packed filter.
int64_t ConvByTapFilterSize(const ConvProblem& problem);
// Packs a filter in dense O,I,kernel order. May throw std::bad_alloc.
void PackConvByTapFilter(const ConvProblem& problem, const float* filter, float* packed);

// Computes `out`, which holds the residual before when the epilogue has one. Images are dense and
// channels-last; `bias` is null without one. Results do not depend on the number of threads.
// REQUIRES: two axes, one group.
void RunConvByTap(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* packed,
                  const float* bias, const float* in, float* out, int num_threads);

}  // namespace interp::nn
