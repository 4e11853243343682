// Pooling of dense channels-last images: the loops, without attributes and tensors.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/pool/pool_axis.h"
#include "kernels/product/gemm.h"
#include "kernels/product/lanes.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

namespace pool_internal {

// What a maximum starts from: the least finite float, for float64 as well, as Paddle has it.
template <typename T>
inline constexpr ComputeType<T> kLowest = std::numeric_limits<float>::lowest();
template <>
inline constexpr float kLowest<bfloat16> = -0x1.fep127F;
template <>
inline constexpr int8_t kLowest<int8_t> = -128;

template <typename T, PoolKind kKind>
struct Reduce {
  using C = ComputeType<T>;
  static constexpr C kStart = kKind == PoolKind::kMax ? kLowest<T> : C{0};
  template <typename V>
  static V Step(V sum, V x) {
    if constexpr (kKind == PoolKind::kMax) {
      return sum > x ? sum : x;
    } else {
      return sum + x;
    }
  }
  template <typename V>
  static V Finish(V sum, C divisor) {
    if constexpr (kKind == PoolKind::kMax) {
      return sum;
    } else {
      return sum / divisor;
    }
  }
};

// The input under one window: `rows` runs of `columns` pixels.
template <typename T>
struct Patch {
  const T* data;  // first pixel, first channel
  int64_t planes, rows, columns;
  int64_t plane_stride, row_stride, pixel_stride;
  ComputeType<T> divisor;
};

// kVectors vectors of channels. With one vector, kSplit partial sums hide the latency of a step.
template <typename T, PoolKind kKind, int kVectors, int kSplit>
inline void PoolVectors(const Patch<T>& patch, int64_t channel, T* out) {
  using C = ComputeType<T>;
  using R = Reduce<T, kKind>;
  constexpr int kLanes = VectorOf<C>::kLanes;
  using L = Lanes<T, kLanes>;
  using V = typename L::type;
  V sums[kSplit][kVectors];
  for (auto& row : sums) {
    for (V& sum : row) sum = V{} + R::kStart;
  }
  for (int64_t z = 0; z < patch.planes; ++z) {
    for (int64_t y = 0; y < patch.rows; ++y) {
      const T* row = patch.data + z * patch.plane_stride + y * patch.row_stride + channel;
      int64_t x = 0;
      const auto step = [&](int s) {
        for (int v = 0; v < kVectors; ++v) {
          sums[s][v] = R::Step(sums[s][v], L::Load(row + v * kLanes));
        }
        row += patch.pixel_stride;
      };
      for (; x + kSplit <= patch.columns; x += kSplit) {
        for (int s = 0; s < kSplit; ++s) step(s);
      }
      for (; x < patch.columns; ++x) step(0);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int s = 1; s < kSplit; ++s) sums[0][v] = R::Step(sums[0][v], sums[s][v]);
    L::Store(R::Finish(sums[0][v], patch.divisor), out + channel + v * kLanes);
  }
}

template <typename T, PoolKind kKind>
void PoolScalar(const Patch<T>& patch, int64_t channel, T* out) {
  using C = ComputeType<T>;
  using R = Reduce<T, kKind>;
  C sum = R::kStart;
  for (int64_t z = 0; z < patch.planes; ++z) {
    for (int64_t y = 0; y < patch.rows; ++y) {
      const T* row = patch.data + z * patch.plane_stride + y * patch.row_stride + channel;
      for (int64_t x = 0; x < patch.columns; ++x)
        sum = R::Step(sum, C{row[x * patch.pixel_stride]});
    }
  }
  out[channel] = R::Finish(sum, patch.divisor);
}

// Channels [begin, end) of one output pixel.
template <typename T, PoolKind kKind>
void PoolPixel(const Patch<T>& patch, int64_t begin, int64_t end, T* out) {
  constexpr int64_t kLanes = VectorOf<ComputeType<T>>::kLanes;
  constexpr int kSplit = 4;
  const auto pool_vector = [&](int64_t c) {
    if (patch.columns < kSplit) {
      PoolVectors<T, kKind, 1, 1>(patch, c, out);
    } else {
      PoolVectors<T, kKind, 1, kSplit>(patch, c, out);
    }
  };
  int64_t c = begin;
  for (; c + 4 * kLanes <= end; c += 4 * kLanes) PoolVectors<T, kKind, 4, 1>(patch, c, out);
  for (; c + kLanes <= end; c += kLanes) pool_vector(c);
  if (c < end && end - begin >= kLanes) {
    pool_vector(end - kLanes);  // some channels a second time
  } else {
    for (; c < end; ++c) PoolScalar<T, kKind>(patch, c, out);
  }
}

// One row of output pixels, channels [begin, end).
template <typename T, PoolKind kKind>
void PoolRow(const Pool& pool, int64_t z, int64_t y, int64_t begin, int64_t end, const T* image,
             T* out) {
  const PoolAxis::Range d = pool.axes[0].Cover(z, pool.exclusive);
  const PoolAxis::Range h = pool.axes[1].Cover(y, pool.exclusive);
  const int64_t row_stride = pool.axes[2].window.in * pool.channels;
  const int64_t plane_stride = pool.axes[1].window.in * row_stride;
  for (int64_t x = 0; x < pool.axes[2].window.out; ++x) {
    const PoolAxis::Range w = pool.axes[2].Cover(x, pool.exclusive);
    const Patch<T> patch = {
        image + d.begin * plane_stride + h.begin * row_stride + w.begin * pool.channels,
        d.end - d.begin,
        h.end - h.begin,
        w.end - w.begin,
        plane_stride,
        row_stride,
        pool.channels,
        static_cast<ComputeType<T>>(d.divisor * h.divisor * w.divisor)};
    PoolPixel<T, kKind>(patch, begin, end, out + x * pool.channels);
  }
}

}  // namespace pool_internal

template <typename T, PoolKind kKind>
void PoolImages(const Pool& pool, const T* in, T* out, int num_threads) {
  const int64_t height = pool.axes[1].window.out;
  const int64_t rows = pool.batch * pool.axes[0].window.out * height;
  const int64_t in_image =
      pool.axes[0].window.in * pool.axes[1].window.in * pool.axes[2].window.in * pool.channels;
  const int64_t out_row = pool.axes[2].window.out * pool.channels;
  // With few rows (global pooling has one per image) the channels are cut as well.
  constexpr int64_t kChannelBlock = 4 * VectorOf<ComputeType<T>>::kLanes;
  const int64_t blocks =
      rows >= num_threads ? 1 : std::max<int64_t>(1, pool.channels / kChannelBlock);
  const int64_t work = in_image * pool.batch / std::max<int64_t>(1, rows * blocks);
  const int64_t grain = GrainFor(work);
  ParallelFor(num_threads, rows * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / blocks;
      const int64_t block = i % blocks;
      const int64_t last = block + 1 == blocks ? pool.channels : (block + 1) * kChannelBlock;
      const int64_t plane = row / height;
      const int64_t depth = pool.axes[0].window.out;
      pool_internal::PoolRow<T, kKind>(pool, plane % depth, row % height, block * kChannelBlock,
                                       last, in + plane / depth * in_image, out + row * out_row);
    }
  });
}

}  // namespace interp::nn
