// The windows of images as rows, and sums over them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Images [images, channels, height, width] whose windows are the rows of a matrix, image by image
// and line by line, in the order channel, row and column of the window.
struct ImageWindows {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t pad[2] = {0, 0};           // in front; pixels outside are 0
  int64_t rows = 0;                  // windows of all images
  const int64_t* starts = nullptr;   // of the device, images + 1: windows in front of each image
  const int64_t* columns = nullptr;  // of the device, images: windows of a line
};

// windows [rows, channels kernel[0] kernel[1]], elements of 1, 2, 4, 8 or 16 bytes. Enqueued on
// `stream`.
absl::Status UnfoldImages(int element_bytes, const ImageWindows& shape, const void* x,
                          void* windows, cudaStream_t stream);

// Each pixel of x_grad becomes the sum of its places in `windows`, in the order of the windows. Of
// float32 or float64. Enqueued on `stream`.
absl::Status SumImageWindows(DType dtype, const ImageWindows& shape, const void* windows,
                             void* x_grad, cudaStream_t stream);

}  // namespace interp::cuda
