// Images sampled at points between pixels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Numbered as interp::GridPadding.
enum class SamplePadding : int8_t { kZeros, kBorder, kReflection };

// x [images, channels, size...], grid [images, points, axes] with x first, out [images, channels,
// points]; coordinates run from -1 to 1 across each axis.
struct GridSample {
  int axes = 2;  // 2 or 3
  int64_t images = 0;
  int64_t channels = 0;
  int64_t size[3] = {1, 1, 1};  // of the axes, from the outermost on
  int64_t points = 0;
  bool nearest = false;
  bool align_corners = true;
  SamplePadding padding = SamplePadding::kZeros;
  const void* x = nullptr;
  const void* grid = nullptr;
  void* out = nullptr;
};

// Of float32 or float64. Enqueued on `stream`.
absl::Status SampleGrid(DType dtype, const GridSample& sample, cudaStream_t stream);

}  // namespace interp::cuda
