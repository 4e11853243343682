// Convolution in groups smaller than a vector, as ResNeXt has: 3x3 of 4 channels each.
//
// The lanes of a vector are the output channels of several groups, and a tile of pixels stays in
// registers. Direct kernels want a group to be whole vectors; oneDNN goes through smaller ones as
// products of copied windows, at a tenth of the speed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/nn/conv_problem.h"

namespace interp::nn {

// True where this is faster than oneDNN's kernels, given a constant filter and images of float32:
// two axes, groups of 2, 4 or 8 input and output channels, and whole vectors of them.
bool ConvGroupedPays(const ConvProblem& problem);

// Floats of a packed filter.
int64_t ConvGroupedFilterSize(const ConvProblem& problem);
// Packs a filter in dense O,I,kernel order.
void PackConvGroupedFilter(const ConvProblem& problem, const float* filter, float* packed);

// Computes `out`, which holds the residual before when the epilogue has one. Images are dense and
// channels-last; `bias` is null without one. Results do not depend on the number of threads.
// REQUIRES: ConvGroupedPays.
void RunConvGrouped(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* packed,
                    const float* bias, const float* in, float* out, int num_threads);

}  // namespace interp::nn
