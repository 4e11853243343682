#include "kernels/conv/image.h"

#include <cstring>

#include "kernels/util/strides.h"
#include "kernels/util/transpose_plane.h"

namespace interp::nn {
namespace {

constexpr int64_t kCopyGrain = 16 * 1024;  // elements per thread

// N,C,spatial -> N,spatial,C of dense images: one matrix transposition per image.
template <typename T>
void TransposeImages(const T* src, T* dst, int64_t batch, int64_t rows, int64_t cols,
                     int num_threads) {
  const int64_t grain = GrainFor(rows, kCopyGrain);
  for (int64_t n = 0; n < batch; ++n) {
    const T* in = src + n * rows * cols;
    T* out = dst + n * rows * cols;
    ParallelFor(num_threads, cols, grain, [=](int64_t begin, int64_t end) {
      TransposeMatrix(in + begin, cols, out + begin * rows, rows, rows, end - begin);
    });
  }
}

// Any strides; slow, for logical N,H,W,C tensors that were turned channels-last once more.
template <typename T>
void CopyStrided(const ImageView& from, const T* src, const ImageView& to, T* dst) {
  std::array<int64_t, kMaxRank> index = {};
  const int64_t count = from.numel();
  for (int64_t done = 0; done < count; ++done) {
    int64_t a = 0;
    int64_t b = 0;
    for (int d = 0; d < from.rank; ++d) {
      a += index[d] * from.strides[d];
      b += index[d] * to.strides[d];
    }
    dst[b] = src[a];
    for (int d = from.rank - 1; d >= 0 && ++index[d] == from.dims[d]; --d) index[d] = 0;
  }
}

}  // namespace

int64_t ImageView::pixels() const {
  int64_t product = 1;
  for (int i = 2; i < rank; ++i) product *= dims[i];
  return product;
}

ImageView ViewImage(const Shape& shape, Layout layout, bool channels_last_dims) {
  const int rank = shape.rank();
  const Strides strides = StridesOf(shape, layout);  // by position in `shape`
  ImageView view;
  view.rank = rank;
  for (int i = 0; i < rank; ++i) {
    int from = i;
    if (channels_last_dims && i > 0) from = i == 1 ? rank - 1 : i - 1;
    view.dims[i] = shape[from];
    view.strides[i] = strides[from];
  }
  return view;
}

ImageView DenseChannelsLast(const ImageView& view) {
  ImageView dense = view;
  int64_t stride = view.dims[1];
  dense.strides[1] = 1;
  for (int i = view.rank - 1; i >= 2; stride *= view.dims[i--]) dense.strides[i] = stride;
  dense.strides[0] = stride;
  return dense;
}

ImageView DenseChannelsFirst(const ImageView& view) {
  ImageView dense = view;
  int64_t stride = 1;
  for (int i = view.rank - 1; i >= 0; stride *= view.dims[i--]) dense.strides[i] = stride;
  return dense;
}

bool SameMemory(const ImageView& a, const ImageView& b) {
  for (int i = 0; i < a.rank; ++i) {
    if (a.dims[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

template <typename T>
void CopyImage(const ImageView& from, const T* src, const ImageView& to, T* dst, int num_threads) {
  if (from.numel() == 0) return;
  if (SameMemory(from, to) && (IsChannelsLast(from) || IsChannelsFirst(from))) {
    std::memcpy(dst, src, static_cast<size_t>(from.numel()) * sizeof(T));
  } else if (IsChannelsFirst(from) && IsChannelsLast(to)) {
    TransposeImages(src, dst, from.batch(), from.channels(), from.pixels(), num_threads);
  } else if (IsChannelsLast(from) && IsChannelsFirst(to)) {
    TransposeImages(src, dst, from.batch(), from.pixels(), from.channels(), num_threads);
  } else {
    CopyStrided(from, src, to, dst);
  }
}

template void CopyImage<float>(const ImageView&, const float*, const ImageView&, float*, int);
template void CopyImage<double>(const ImageView&, const double*, const ImageView&, double*, int);
template void CopyImage<bfloat16>(const ImageView&, const bfloat16*, const ImageView&, bfloat16*,
                                  int);
template void CopyImage<int8_t>(const ImageView&, const int8_t*, const ImageView&, int8_t*, int);

}  // namespace interp::nn
