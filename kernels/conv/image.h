// Batches of images and volumes as convolution, pooling and normalisation see them: N, C and up to
// three spatial dims, whatever the order of the tensor's dims (attribute data_format) and of its
// memory (Tensor::layout).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/tensor.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

// dims and strides are N, C, spatial...; strides count elements. Tensors of rank 2 (N, C) have no
// spatial dims.
struct ImageView {
  int rank = 0;
  std::array<int64_t, kMaxRank> dims = {};
  std::array<int64_t, kMaxRank> strides = {};

  int64_t batch() const { return dims[0]; }
  int64_t channels() const { return dims[1]; }
  int spatial_rank() const { return rank - 2; }
  int64_t spatial(int i) const { return dims[2 + i]; }
  // Number of pixels of one image.
  int64_t pixels() const;
  int64_t numel() const { return dims[0] * dims[1] * pixels(); }
  absl::Span<const int64_t> dims_span() const { return {dims.data(), static_cast<size_t>(rank)}; }
};

// The view of a tensor of rank 2 or more. `channels_last_dims`: its last dim is C, as the attribute
// data_format or data_layout says.
ImageView ViewImage(const Shape& shape, Layout layout, bool channels_last_dims);
inline ImageView ViewImage(const Tensor& tensor, bool channels_last_dims) {
  return ViewImage(tensor.shape, tensor.layout, channels_last_dims);
}
// The same dims with dense strides: N,spatial,C in memory, or N,C,spatial.
ImageView DenseChannelsLast(const ImageView& view);
ImageView DenseChannelsFirst(const ImageView& view);
// True when both views have the same strides, dims of size one aside.
bool SameMemory(const ImageView& a, const ImageView& b);
inline bool IsChannelsLast(const ImageView& view) {
  return SameMemory(view, DenseChannelsLast(view));
}
inline bool IsChannelsFirst(const ImageView& view) {
  return SameMemory(view, DenseChannelsFirst(view));
}

// True for "NHWC" and "NDHWC"; everything else (NCHW, AnyLayout, ...) has channels second.
inline bool HasChannelsLastDims(absl::string_view data_format) {
  return data_format == "NHWC" || data_format == "NDHWC" || data_format == "NLC";
}

// Copies the image `src`, which lies as `from`, to `dst`, which lies as `to`. REQUIRES: equal dims.
template <typename T>
void CopyImage(const ImageView& from, const T* src, const ImageView& to, T* dst, int num_threads);

extern template void CopyImage<float>(const ImageView&, const float*, const ImageView&, float*,
                                      int);
extern template void CopyImage<double>(const ImageView&, const double*, const ImageView&, double*,
                                       int);
extern template void CopyImage<bfloat16>(const ImageView&, const bfloat16*, const ImageView&,
                                         bfloat16*, int);
extern template void CopyImage<int8_t>(const ImageView&, const int8_t*, const ImageView&, int8_t*,
                                       int);

}  // namespace interp::nn
