// Gradients of a convolution by plain loops, for the element types and cases that have no fast
// path. Any strides.
#pragma once

#include <algorithm>

#include "kernels/conv/conv_direct.h"

namespace interp::nn {

// Images and filter of one convolution, as they lie.
template <typename T>
struct ConvImages {
  ImageView in_view;
  const T* in = nullptr;
  ImageView filter_view;
  const T* filter = nullptr;
  ImageView out_view;  // of the gradient of the output
  const T* out_grad = nullptr;
};

// in_grad, which lies as in_view: every element gets its whole sum.
template <typename T>
void ConvDirectDataGrad(const ConvProblem& problem, const ConvImages<T>& images, T* in_grad,
                        int num_threads) {
  const Window window = PadTo3(problem.window);
  const std::array<int64_t, 5> in_strides = Strides3(images.in_view);
  const std::array<int64_t, 5> out_strides = Strides3(images.out_view);
  const std::array<int64_t, 5> filter_strides = Strides3(images.filter_view);
  std::fill_n(in_grad, images.in_view.numel(), T{0});
  const int64_t maps = problem.batch * problem.in_channels;
  ParallelFor(num_threads, maps, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t map = begin; map < end; ++map) {
      const int64_t n = map / problem.in_channels;
      const int64_t ic = map % problem.in_channels;
      const int64_t first = ic / problem.group_in() * problem.group_out();
      T* x = in_grad + n * in_strides[0] + ic * in_strides[1];
      for (int64_t oc = first; oc < first + problem.group_out(); ++oc) {
        const T* y = images.out_grad + n * out_strides[0] + oc * out_strides[1];
        const T* w =
            images.filter + oc * filter_strides[0] + ic % problem.group_in() * filter_strides[1];
        ForEachWindowRow(
            window, in_strides, out_strides, filter_strides,
            [=](int64_t i, int64_t o, int64_t k, int64_t count, int64_t in_step, int64_t out_step) {
              const T weight = w[k];
              for (int64_t j = 0; j < count; ++j)
                x[i + j * in_step] += weight * y[o + j * out_step];
            });
      }
    }
  });
}

// filter_grad, which lies as filter_view.
template <typename T>
void ConvDirectFilterGrad(const ConvProblem& problem, const ConvImages<T>& images, T* filter_grad,
                          int num_threads) {
  const Window window = PadTo3(problem.window);
  const std::array<int64_t, 5> in_strides = Strides3(images.in_view);
  const std::array<int64_t, 5> out_strides = Strides3(images.out_view);
  const std::array<int64_t, 5> filter_strides = Strides3(images.filter_view);
  std::fill_n(filter_grad, images.filter_view.numel(), T{0});
  const int64_t maps = problem.out_channels * problem.group_in();
  ParallelFor(num_threads, maps, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t map = begin; map < end; ++map) {
      const int64_t oc = map / problem.group_in();
      const int64_t ic = map % problem.group_in();
      const int64_t first = oc / problem.group_out() * problem.group_in();
      T* w = filter_grad + oc * filter_strides[0] + ic * filter_strides[1];
      for (int64_t n = 0; n < problem.batch; ++n) {
        const T* x = images.in + n * in_strides[0] + (first + ic) * in_strides[1];
        const T* y = images.out_grad + n * out_strides[0] + oc * out_strides[1];
        ForEachWindowRow(
            window, in_strides, out_strides, filter_strides,
            [=](int64_t i, int64_t o, int64_t k, int64_t count, int64_t in_step, int64_t out_step) {
              T sum = 0;
              for (int64_t j = 0; j < count; ++j) sum += x[i + j * in_step] * y[o + j * out_step];
              w[k] += sum;
            });
      }
    }
  });
}

}  // namespace interp::nn
