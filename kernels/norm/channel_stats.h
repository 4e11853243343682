// Loops over images by channel, for normalisations: moments and y = x * scale[c] + shift[c].
// Dense images in either order; channels-first ones are N x C planes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/conv/image.h"
#include "kernels/norm/channel_sums.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

// Adds f(x, c) of every pixel of image n to sums[c], for channels [begin, end).
template <typename T, typename F>
void AddByChannel(const ImageView& view, const T* x, int64_t n, int64_t begin, int64_t end,
                  const F& f, double* sums) {
  const int64_t channels = view.channels();
  const int64_t pixels = view.pixels();
  x += n * channels * pixels;
  if (IsChannelsLast(view)) {
    for (int64_t i = 0; i < pixels; ++i, x += channels) {
      for (int64_t c = begin; c < end; ++c) sums[c] += f(x[c], c);
    }
    return;
  }
  constexpr int kLanes = 16;
  for (int64_t c = begin; c < end; ++c) {
    const T* plane = x + c * pixels;
    double lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= pixels; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += f(plane[i + lane], c);
    }
    for (; i < pixels; ++i) lanes[0] += f(plane[i], c);
    for (const double lane : lanes) sums[c] += lane;
  }
}

// Cuts the channels over threads: body(begin, end).
template <typename Body>
void ForChannelBlocks(const ImageView& view, int num_threads, const Body& body) {
  constexpr int64_t kBlock = 16;  // a cache line of floats: threads do not share lines
  const int64_t blocks = (view.channels() + kBlock - 1) / kBlock;
  const int64_t work = view.batch() * view.pixels() * kBlock;
  const int64_t grain = GrainFor(work);
  ParallelFor(num_threads, blocks, grain, [&](int64_t begin, int64_t end) {
    body(begin * kBlock, std::min(end * kBlock, view.channels()));
  });
}

struct Moments {
  std::vector<double> mean;
  std::vector<double> variance;  // biased
};

// Moments by channel of a whole batch, in two passes over the data.
template <typename T>
Moments BatchMoments(const ImageView& view, const T* x, int num_threads) {
  using C = ComputeType<T>;
  const double count = static_cast<double>(view.batch() * view.pixels());
  const auto value = [x](int64_t at, int64_t) { return std::array<C, 1>{C{x[at]}}; };
  Moments moments;
  moments.mean = SumByChannel<C, 1>(view, value, num_threads);
  for (double& mean : moments.mean) mean /= count;
  // The sums of squares around a rounded mean differ by the square of what rounding took.
  const std::vector<C> means(moments.mean.begin(), moments.mean.end());
  const C* mean = means.data();
  const auto square = [x, mean](int64_t at, int64_t c) {
    return std::array<C, 1>{(C{x[at]} - mean[c]) * (C{x[at]} - mean[c])};
  };
  moments.variance = SumByChannel<C, 1>(view, square, num_threads);
  for (double& variance : moments.variance) variance /= count;
  return moments;
}

// y = by(c, at)(x) for channel c, where `at` is c plus `stride` for each image before. May run in
// place.
template <typename T, typename By>
void MapChannels(const ImageView& view, const T* x, int64_t stride, const By& by, T* y,
                 int num_threads) {
  const int64_t channels = view.channels();
  const int64_t pixels = view.pixels();
  if (IsChannelsLast(view)) {
    const int64_t grain = GrainFor(channels);
    ParallelFor(num_threads, view.batch() * pixels, grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / pixels * stride;
        const T* from = x + i * channels;
        T* to = y + i * channels;
        for (int64_t c = 0; c < channels; ++c) to[c] = by(c, first + c)(from[c]);
      }
    });
    return;
  }
  const int64_t grain = GrainFor(pixels);
  ParallelFor(num_threads, view.batch() * channels, grain, [=](int64_t begin, int64_t end) {
    for (int64_t map = begin; map < end; ++map) {
      const int64_t c = map % channels;
      const auto function = by(c, map / channels * stride + c);
      const T* from = x + map * pixels;
      T* to = y + map * pixels;
      for (int64_t i = 0; i < pixels; ++i) to[i] = function(from[i]);
    }
  });
}

// y = x * scale[c] + shift[c], then max(y, 0) with `relu`. May run in place.
template <typename T, typename C = ComputeType<T>>
void ScaleChannels(const ImageView& view, const T* x, const C* scale, const C* shift, bool relu,
                   T* y, int num_threads) {
  const C floor = relu ? C{0} : -std::numeric_limits<C>::infinity();
  const auto by = [=](int64_t c, int64_t) {
    return [a = scale[c], b = shift[c], floor](C v) {
      const C scaled = v * a + b;
      return scaled < floor ? floor : scaled;
    };
  };
  MapChannels(view, x, /*stride=*/0, by, y, num_threads);
}

}  // namespace interp::nn
