// What the gradients of normalisations by channel share.
#pragma once

#include <optional>
#include <vector>

#include "kernels/conv/image.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

// X@GRAD = gradient * Y@GRAD + value * (X - mean) + shift, by channel; image n has its own factors,
// `image_stride` after those of image n - 1, or shares those of all (0).
template <typename T>
struct NormGradFactors {
  std::vector<T> gradient, value, mean, shift;
  int64_t image_stride;

  NormGradFactors(size_t count, int64_t stride)
      : gradient(count, T{1}), value(count), mean(count), shift(count), image_stride(stride) {}
};

// All images lie as `view` says, which is dense. y_grad and x_grad may be the same memory.
template <typename T, typename C = ComputeType<T>>
void ApplyNormGrad(const ImageView& view, const NormGradFactors<C>& by, const T* x, const T* y_grad,
                   T* x_grad, int num_threads) {
  const int64_t channels = view.channels();
  const int64_t pixels = view.pixels();
  if (IsChannelsLast(view)) {
    const int64_t grain = GrainFor(channels);
    ParallelFor(num_threads, view.batch() * pixels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        const int64_t image = pixel / pixels * by.image_stride;
        const C* gradient = by.gradient.data() + image;
        const C* value = by.value.data() + image;
        const C* mean = by.mean.data() + image;
        const C* shift = by.shift.data() + image;
        const T* from = x + pixel * channels;
        const T* grad = y_grad + pixel * channels;
        T* to = x_grad + pixel * channels;
        for (int64_t c = 0; c < channels; ++c) {
          to[c] = gradient[c] * grad[c] + value[c] * (from[c] - mean[c]) + shift[c];
        }
      }
    });
    return;
  }
  const int64_t grain = GrainFor(pixels);
  ParallelFor(num_threads, view.batch() * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t map = begin; map < end; ++map) {
      const size_t c = static_cast<size_t>(map / channels * by.image_stride + map % channels);
      const C gradient = by.gradient[c];
      const C value = by.value[c];
      const C mean = by.mean[c];
      const C shift = by.shift[c];
      for (int64_t i = map * pixels; i < (map + 1) * pixels; ++i) {
        x_grad[i] = gradient * y_grad[i] + value * (x[i] - mean) + shift;
      }
    }
  });
}

// The images of a normalisation's gradient. `x_grad` may be null.
struct GradImages {
  const Tensor& x;
  const Tensor& y_grad;
  Tensor* x_grad;
};

// Calls body(view, x, y_grad, x_grad), an absl::Status, on images that all lie as the dense `view`
// says: their own memory, or channels-last copies.
template <typename T, typename Body>
absl::Status WithDenseGradImages(const KernelContext& ctx, const GradImages& images,
                                 bool channels_last_dims, const Body& body) {
  const ImageView view = ViewImage(images.x, channels_last_dims);
  const auto alike = [&](const Tensor& image) {
    return SameMemory(view, ViewImage(image, channels_last_dims));
  };
  if ((IsChannelsLast(view) || IsChannelsFirst(view)) && alike(images.y_grad) &&
      (images.x_grad == nullptr || alike(*images.x_grad))) {
    return body(view, images.x.data<T>(), images.y_grad.data<T>(), DataOrNull<T>(images.x_grad));
  }
  const ImageView dense = DenseChannelsLast(view);
  std::optional<Workspace> x_copy;
  INTERP_ASSIGN_OR_RETURN(const T* const x,
                          AsChannelsLast<T>(ctx, images.x, channels_last_dims, x_copy));
  if (images.x_grad != nullptr) {
    return WithChannelsLast<T>(ctx, images.y_grad, *images.x_grad, channels_last_dims,
                               [&](const T* from, T* to) { return body(dense, x, from, to); });
  }
  std::optional<Workspace> copy;
  INTERP_ASSIGN_OR_RETURN(const T* const y_grad,
                          AsChannelsLast<T>(ctx, images.y_grad, channels_last_dims, copy));
  return body(dense, x, y_grad, static_cast<T*>(nullptr));
}

}  // namespace interp::nn
