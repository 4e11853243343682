// Convolution by Winograd's minimal filtering F(4x4, 3x3): the inner loop does 36 multiplications
// for 16 outputs where a direct one does 144.
//
// The output is cut into tiles of 4 x 4 pixels. The 6 x 6 input pixels of a tile and the 3 x 3
// filter are transformed to 36 points each, at every point the channels are multiplied as matrices
// (tiles x input channels by input x output channels), and the 36 sums are transformed back. Images
// stay channels-last: a tile is transformed for a vector of channels at a time.
//
// The points of interpolation are 0, +-5/8, +-3/2 and infinity, as in oneDNN 2: their error is
// about that of the direct sum, relative to the largest input of a tile. So a huge or infinite
// value spoils the outputs of its tile that its window does not reach. Sources: Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015; Barabasz et al., "Error Analysis and
// Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2020.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv_problem.h"
#include "kernels/product/gemm.h"

namespace interp::nn {

// For reports.
inline constexpr const char* kWinogradName = "winograd 4x4";

// True when Winograd's method can compute the case and is expected to be faster than a direct
// convolution. Depends on the sizes alone. `constant`: the filter is transformed once, not in each
// run. `dtype`: of the images, float32 or bfloat16.
bool WinogradPays(const ConvProblem& problem, bool constant, DType dtype = DType::kFloat32);

// A filter where its element for input channel i and output channel o of a group and tap t of 9
// lies at data[i * in_stride + o * out_stride + t], with `mirrored` at tap 8 - t. One group lies
// behind the other. It is multiplied by the factor of o, if there are factors.
struct TapFilter {
  const float* data = nullptr;
  int64_t in_stride = 0;
  int64_t out_stride = 0;
  bool mirrored = false;
  absl::Span<const double> factors = {};
};

// The filter of `problem`, which is 3 x 3.
TapFilter ForwardFilter(const ConvProblem& problem, const ScaledFilter& filter);

// The gradient of a convolution by its input is a convolution of the output's gradient with the
// mirrored filter, if the stride is 1: WinogradPays refuses the problem otherwise. Paddings of more
// than the window reaches become negative, which is allowed.
ConvProblem DataGradProblem(const ConvProblem& problem);
TapFilter DataGradFilter(const ConvProblem& problem, const float* data);

// Floats of the 36 transformed and packed matrices of a filter.
int64_t WinogradFilterSize(const ConvProblem& problem);

// Writes all WinogradFilterSize(problem) of `points`, which are aligned to a cache line.
void TransformFilter(const ConvProblem& problem, const TapFilter& taps, int num_threads,
                     float* points);

// A transformed filter with memory of its own.
struct WinogradFilter {
  AlignedArray<float> points;
};

// Fills `filter`, which gets the room it needs. May throw std::bad_alloc.
void TransformFilter(const ConvProblem& problem, const TapFilter& taps, int num_threads,
                     WinogradFilter& filter);

// Bytes of working memory that RunWinograd wants.
size_t WinogradWorkBytes(const ConvProblem& problem, int num_threads);

// Computes `out`, which holds the residual before when the epilogue has one. Both are dense
// channels-last images of float or bfloat16, which is rounded once. `points` is the transformed
// filter; `bias` is null or has an element for each output channel; `work` is aligned to a cache
// line. The bits do not depend on the number of threads.
template <typename T>
void RunWinograd(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* points,
                 const float* bias, const T* in, T* out, int num_threads, float* work);

}  // namespace interp::nn
