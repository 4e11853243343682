// Depthwise convolution, a few output rows at a time: for images of which only some rows are there.
//
// Vectors of channels are the lanes. Eight outputs of a row stay in registers while the window goes
// over them, so that each input is loaded once for up to three (or five) of them. oneDNN's kernels
// take whole images and keep one output at a time per register, which the loads then limit.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_problem.h"

namespace interp::nn {

// Whether DepthwiseRows computes the case: windows of 3 x 3 or 5 x 5 without holes, the same stride
// of 1 or 2 in both axes, one output for each channel, and at least a vector of channels.
bool DepthwiseRowsTakes(const ConvProblem& problem);

// A filter in the order of DepthwiseRows and what is added to its sums.
struct DepthwiseWeights {
  const float* taps = nullptr;  // by position in the window, then by channel
  const float* bias = nullptr;  // by channel
};

// From dense O,1,kh,kw order: `taps` has room for as many numbers.
void PackTaps(const ConvProblem& problem, const float* filter, float* taps);

// Rows of an image, some of them: row r lies at `data` + (r - first) % ring rows.
struct RowRing {
  const float* data = nullptr;
  int64_t first = 0;
  int64_t ring = 0;
};

// Rows [first, last) of one image, channels-last, to `out`, which is the first of them. `in` has
// the rows that the windows reach, but for padding.
// REQUIRES: DepthwiseRowsTakes(problem); the epilogue has no residual.
void DepthwiseRows(const ConvProblem& problem, const ConvEpilogue& epilogue,
                   const DepthwiseWeights& weights, const RowRing& in, int64_t first, int64_t last,
                   float* out);

}  // namespace interp::nn
