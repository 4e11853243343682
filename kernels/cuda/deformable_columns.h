// What deformable convolutions multiply their filters by: an image sampled where the offsets say.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Images [images, channels, height, width] and the windows of a kernel over them, of which there
// are out_height out_width an image. With P = kernel[0] kernel[1]:
struct DeformableColumns {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t groups = 1;  // of channels that share their samples
  int64_t height = 0;
  int64_t width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t pad[2] = {0, 0};  // in front; pixels outside are 0
  int64_t dilation[2] = {1, 1};
  const void* x = nullptr;
  const void* offset = nullptr;  // [images, groups, P, 2, out_height, out_width]: y and x
  const void* mask = nullptr;    // [images, groups, P, out_height, out_width]; null: ones
  void* columns = nullptr;       // [images, channels, P, out_height, out_width]
};

// Of float32 or float64. Enqueued on `stream`.
absl::Status SampleColumns(DType dtype, const DeformableColumns& columns, cudaStream_t stream);

}  // namespace interp::cuda
