// The gradient of a convolution by its filter, by Winograd's method: the adjoint of
// conv_winograd.h, which needs as few multiplications. The gradients of a tile's outputs are
// transformed to the 36 points as well; at each point inputs and gradients of all tiles are
// multiplied to a matrix of input by output channels; the 36 matrices are transformed to 3 x 3
// taps.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_problem.h"

namespace interp::nn {

// True when Winograd's method can compute the case and is expected to be faster than direct sums.
// Depends on the sizes alone.
bool WinogradFilterGradPays(const ConvProblem& problem);

// Bytes of working memory that WinogradFilterGrad wants.
size_t WinogradFilterGradWorkBytes(const ConvProblem& problem);

// `filter_grad` gets dense O,I,3,3 order. Images are dense and channels-last; `work` is aligned to
// a cache line. The bits do not depend on the number of threads.
void WinogradFilterGrad(const ConvProblem& problem, const float* in, const float* out_grad,
                        float* filter_grad, int num_threads, float* work);

}  // namespace interp::nn
