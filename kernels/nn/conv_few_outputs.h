// Convolution with few output channels, as those that end in an image or a map have: 9x9 64>3.
//
// Direct kernels give a vector to the output channels and leave most of it empty. Here the columns
// of a matrix product are the taps and output channels together:
//
//   taps[x, (ky, kx, o)] = sum_i in[y, x, i] * filter[o, i, ky, kx]     for each row y of the input
//
// and an output is the sum of what the taps of its window give ("kn2row": Vasudevan, Anderson,
// Gregg, "Parallel Multi Channel Convolution using General Matrix Multiplication", 2017).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/nn/conv_problem.h"

namespace interp::nn {

// True where this is faster than oneDNN's direct kernels, given a constant filter and images of
// float32.
bool ConvFewOutputsPays(const ConvProblem& problem);

// Floats of a packed filter.
int64_t ConvFewOutputsFilterSize(const ConvProblem& problem);
// Packs a filter in dense O,I,kernel order. May throw std::bad_alloc.
void PackConvFewOutputsFilter(const ConvProblem& problem, const float* filter, float* packed);

// Working memory of a run.
size_t ConvFewOutputsWorkBytes(const ConvProblem& problem, int num_threads);

// Computes `out`, which holds the residual before when the epilogue has one. Images are dense and
// channels-last; `bias` is null without one; `work` has ConvFewOutputsWorkBytes. Results do not
// depend on the number of threads. REQUIRES: two axes, one group, at most 8 output channels.
void RunConvFewOutputs(const ConvProblem& problem, const ConvEpilogue& epilogue,
                       const float* packed, const float* bias, const float* in, float* out,
                       int num_threads, float* work);

}  // namespace interp::nn
