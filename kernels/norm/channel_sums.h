// Sums over the pixels of images by channel, whose order depends on the shape alone. Dense images
// in either order; channels-first ones are N x C planes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/conv/image.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

namespace channel_internal {

// Elements summed in their own type before they are added in double.
constexpr int64_t kRun = 64;
constexpr int64_t kTile = 64;  // channels

// Adds the terms of pixels [begin, end), which lie channels-last, to sums, `channels` for each
// term.
template <typename T, int kSums, typename Terms>
void SumPixels(int64_t channels, int64_t begin, int64_t end, const Terms& terms, double* sums) {
  for (int64_t c = 0; c < channels; c += kTile) {
    const int64_t width = std::min(kTile, channels - c);
    for (int64_t run = begin; run < end; run += kRun) {
      T parts[kSums][kTile] = {};
      for (int64_t i = run; i < std::min(run + kRun, end); ++i) {
        const int64_t at = i * channels + c;
        for (int64_t j = 0; j < width; ++j) {
          const std::array<T, kSums> term = terms(at + j, c + j);
          for (int s = 0; s < kSums; ++s) parts[s][j] += term[s];
        }
      }
      for (int s = 0; s < kSums; ++s) {
        for (int64_t j = 0; j < width; ++j) sums[s * channels + c + j] += parts[s][j];
      }
    }
  }
}

// Adds the terms of `count` elements from `at` on, all of channel c, to sums[0], sums[channels],
// ...
template <typename T, int kSums, typename Terms>
void SumPlane(int64_t channels, int64_t at, int64_t count, int64_t c, const Terms& terms,
              double* sums) {
  constexpr int64_t kLanes = 16;
  for (int64_t run = 0; run < count; run += kRun * kLanes) {
    T parts[kSums][kLanes] = {};
    const int64_t end = std::min(count, run + kRun * kLanes);
    for (int64_t i = run; i < end; i += kLanes) {
      const int64_t width = std::min(kLanes, end - i);
      for (int64_t j = 0; j < width; ++j) {
        const std::array<T, kSums> term = terms(at + i + j, c);
        for (int s = 0; s < kSums; ++s) parts[s][j] += term[s];
      }
    }
    for (int s = 0; s < kSums; ++s) {
      for (int64_t j = 0; j < kLanes; ++j) sums[s * channels] += parts[s][j];
    }
  }
}

// Sums of planes, image after image; of_image(n) gives the terms of image n.
template <typename T, int kSums, typename OfImage>
std::vector<double> SumPlanes(const ImageView& view, const OfImage& of_image, int num_threads) {
  const int64_t channels = view.channels();
  const int64_t pixels = view.pixels();
  const int64_t width = kSums * channels;
  std::vector<double> sums(static_cast<size_t>(view.batch() * width));
  const int64_t grain = GrainFor(pixels);
  ParallelFor(num_threads, view.batch() * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t map = begin; map < end; ++map) {
      const int64_t n = map / channels;
      const int64_t c = map % channels;
      SumPlane<T, kSums>(channels, map * pixels, pixels, c, of_image(n),
                         sums.data() + n * width + c);
    }
  });
  return sums;
}

}  // namespace channel_internal

// Sums over all pixels of a batch by channel: terms(at, c) gives the kSums terms of the element at
// offset `at`, of channel c. Result: the channels' first sums, then their second ones. The order of
// the additions depends on the view alone.
template <typename T, int kSums, typename Terms>
std::vector<double> SumByChannel(const ImageView& view, const Terms& terms, int num_threads) {
  const int64_t channels = view.channels();
  const int64_t pixels = view.pixels();
  const bool last = IsChannelsLast(view);
  // Parts: runs of pixels, or images.
  const int64_t size = last ? std::max<int64_t>(256, 16 * 1024 / std::max<int64_t>(channels, 1))
                            : std::max<int64_t>(pixels, 1);
  const int64_t total = view.batch() * pixels;
  const int64_t parts = (total + size - 1) / size;
  std::vector<double> sums(static_cast<size_t>(std::max<int64_t>(parts, 1) * kSums * channels));
  const int64_t grain = GrainFor(size * channels);
  ParallelFor(num_threads, parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      double* to = sums.data() + part * kSums * channels;
      if (last) {
        channel_internal::SumPixels<T, kSums>(channels, part * size,
                                              std::min(total, (part + 1) * size), terms, to);
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        channel_internal::SumPlane<T, kSums>(channels, (part * channels + c) * pixels, pixels, c,
                                             terms, to + c);
      }
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < kSums * channels; ++i) sums[i] += sums[part * kSums * channels + i];
  }
  sums.resize(static_cast<size_t>(kSums * channels));
  return sums;
}

// The same for each image: terms(n, at, c). Result: for image after image what SumByChannel gives.
template <typename T, int kSums, typename Terms>
std::vector<double> SumByImage(const ImageView& view, const Terms& terms, int num_threads) {
  const int64_t channels = view.channels();
  const int64_t pixels = view.pixels();
  const int64_t width = kSums * channels;
  const auto of_image = [&terms](int64_t n) {
    return [&terms, n](int64_t at, int64_t c) { return terms(n, at, c); };
  };
  if (!IsChannelsLast(view))
    return channel_internal::SumPlanes<T, kSums>(view, of_image, num_threads);
  const int64_t size = std::max<int64_t>(256, 16 * 1024 / std::max<int64_t>(channels, 1));
  const int64_t parts = std::max<int64_t>(1, (pixels + size - 1) / size);
  std::vector<double> sums(static_cast<size_t>(view.batch() * parts * width));
  const int64_t grain = GrainFor(size * channels);
  ParallelFor(num_threads, view.batch() * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / parts;
      const int64_t first = i % parts * size;
      channel_internal::SumPixels<T, kSums>(channels, n * pixels + first,
                                            n * pixels + std::min(pixels, first + size),
                                            of_image(n), sums.data() + i * width);
    }
  });
  // Parts of an image are added to the first, which then moves to its place.
  for (int64_t n = 0; n < view.batch(); ++n) {
    double* const first = sums.data() + n * parts * width;
    for (int64_t i = width; i < parts * width; ++i) first[i % width] += first[i];
    std::copy_n(first, width, sums.data() + n * width);
  }
  sums.resize(static_cast<size_t>(view.batch() * width));
  return sums;
}

}  // namespace interp::nn
