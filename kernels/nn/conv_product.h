// Convolution as a product of matrices (gemm.h): of the inputs that each output pixel's window
// sees, a row each, and the filter.
//
// It is for images of few pixels and many channels, as the late stages of classifiers have, whose
// filters come from beyond the L2 cache in each run: our product fetches the next panel of the
// filter while it multiplies with one, where oneDNN's kernels wait.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/nn/conv_problem.h"

namespace interp::nn {

// True where the product is faster than oneDNN's direct kernels, given a constant filter and images
// of float32.
bool ConvProductPays(const ConvProblem& problem);

// Floats of a packed filter.
int64_t ConvProductFilterSize(const ConvProblem& problem);
// Packs a filter in dense O,I,kernel order. May throw std::bad_alloc.
void PackConvProductFilter(const ConvProblem& problem, const float* filter, float* packed);

// Working memory of a run.
size_t ConvProductWorkBytes(const ConvProblem& problem);

// What lies beside an image is multiplied by zeros, so NaN and infinity of a filter reach results
// whose windows stick out. Computes `out`, which holds the residual before when the epilogue has
// one. Images are dense and channels-last; `bias` is null without one; `work` has
// ConvProductWorkBytes. Results do not depend on the number of threads. REQUIRES: one group.
void RunConvProduct(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* packed,
                    const float* bias, const float* in, float* out, int num_threads, float* work);

}  // namespace interp::nn
