// How kernels walk images by channel: sums over parts of a channel, and maps of all elements with
// numbers of their channels. Included by `.cu` files alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/divisor.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"

namespace interp::cuda {

// Offsets of elements by channel.
struct ChannelWalk {
  ChannelShape shape;
  Divisor pixels;
  Divisor channels;
  int parts = 1;  // that the elements of a channel are summed in; depends on the shape alone

  // REQUIRES: a size of at most kMostElements.
  explicit ChannelWalk(const ChannelShape& shape)
      : shape(shape),
        pixels(static_cast<uint32_t>(std::max<int64_t>(shape.pixels, 1))),
        channels(static_cast<uint32_t>(std::max<int64_t>(shape.channels, 1))),
        parts(PartsOf(shape)) {}

  static int PartsOf(const ChannelShape& shape) {
    constexpr int64_t kPart = 2048;
    constexpr int64_t kMostParts = 64;
    return static_cast<int>(std::clamp<int64_t>(shape.per_channel() / kPart, 1, kMostParts));
  }

  __device__ int64_t OffsetOf(int64_t channel, int64_t i) const {
    if (shape.channels_last) return i * shape.channels + channel;
    auto image = static_cast<uint32_t>(i);
    const uint32_t pixel = pixels.Split(image);
    return (image * shape.channels + channel) * shape.pixels + pixel;
  }
  __device__ int64_t ChannelOf(int64_t offset) const {
    auto left = static_cast<uint32_t>(offset);
    if (!shape.channels_last) pixels.Split(left);
    return channels.Split(left);
  }
  // Elements [begin, end) of a channel are part `part`.
  __device__ int64_t Begin(int part) const { return shape.per_channel() * part / parts; }
};

// Sums term(offset), over the threads of a block, of part `part` of a channel. In double, as on the
// host.
template <typename Term>
__device__ double SumPart(const ChannelWalk& walk, int64_t channel, int part, const Term& term) {
  double total = 0;
  for (int64_t i = walk.Begin(part) + threadIdx.x; i < walk.Begin(part + 1); i += blockDim.x) {
    total += term(walk.OffsetOf(channel, i));
  }
  return SumRow(total);
}

}  // namespace interp::cuda
