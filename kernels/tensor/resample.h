// Resampling of images along D, H and W, for the interpolation ops.
//
// Each output coordinate of a dimension is a weighted sum of a few input coordinates ("taps": 2 for
// linear, 4 for cubic interpolation), and the dimensions are independent. So a row of the output is
// made in two steps that both vectorise: the input rows it depends on are blended into one, and
// that one is resampled along W.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace interp {

// Memory as [outer][depth][height][width][inner]: `inner` is the channels when these lie last.
struct ImageView {
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t in[3] = {1, 1, 1};  // depth, height, width
  int64_t out[3] = {1, 1, 1};
};

// Where the coordinates of one output dimension come from. The arrays go by tap, then by output
// coordinate. Weights are double for float64 images, float otherwise.
template <typename Weight>
struct Taps {
  int count = 1;
  std::vector<int32_t> index;
  std::vector<Weight> weight;
};

// How coordinates map: source = ratio * target, or with half_pixel the centres of the pixels map.
struct CoordinateMap {
  int64_t in = 1;
  int64_t out = 1;
  float ratio = 0;
  bool align_corners = false;
  bool half_pixel = false;
  bool in_double = false;  // the centres of pixels are mapped in double
};

// Fill `taps`, reusing its memory. Arithmetic is in float where Paddle's is, so that coordinates
// fall on the same side of a pixel border.
template <typename Weight>
void NearestTaps(const CoordinateMap& map, Taps<Weight>& taps);
template <typename Weight>
void LinearTaps(const CoordinateMap& map, Taps<Weight>& taps);
template <typename Weight>
void CubicTaps(const CoordinateMap& map, Taps<Weight>& taps);

// Copies the nearest elements; `taps` has one tap per dimension, weights are not read.
void ResampleNearest(int num_threads, const ImageView& view, const Taps<float> (&taps)[3],
                     size_t element_bytes, const void* in, void* out);

// Blends with weights. `scratch` is memory kept between calls.
template <typename T, typename Weight>
void ResampleBlend(int num_threads, const ImageView& view, const Taps<Weight> (&taps)[3],
                   const T* in, T* out, std::vector<Weight>& scratch);

// The gradient of ResampleBlend by `in`, or of ResampleNearest: every element of `out_grad` is
// added, times its weights, to the elements of `in_grad` that it was made of. `scratch` as above.
template <typename T>
void ResampleGradient(int num_threads, const ImageView& view, const Taps<T> (&taps)[3],
                      const T* out_grad, T* in_grad, std::vector<T>& scratch);

}  // namespace interp
