#include "core/image/pixels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace interp {
namespace {

constexpr int kChannels = Picture<float>::kChannels;

// element = value * factor + offset, where value is a mix of the pixel's channels. Grey as in
// Recommendation ITU-R BT.601.
struct Channel {
  float mix[kChannels] = {0, 0, 0};
  float factor = 1;
  float offset = 0;
};

Channel ChannelOf(const PixelFormat& format, int c) {
  const auto of = [&](const std::vector<double>& values) {
    return values[values.size() == 1 ? 0 : c];
  };
  Channel channel;
  if (format.colour == Colour::kGray) {
    channel = {.mix = {0.299F, 0.587F, 0.114F}};
  } else {
    channel.mix[format.colour == Colour::kBgr ? kChannels - 1 - c : c] = 1;
  }
  channel.factor = static_cast<float>(format.scale / of(format.deviation));
  channel.offset = static_cast<float>(-of(format.mean) / of(format.deviation));
  return channel;
}

template <typename T>
T ToElement(float value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
    return static_cast<T>(std::clamp(std::round(static_cast<double>(value)), kLow, kHigh));
  } else {
    return T(value);
  }
}

// Writes every `step`-th element from `to` on, which goes backwards where the step is negative.
template <typename T>
void WriteRow(const float* pixels, int width, const Channel& channel, T* to, int64_t step) {
  for (int x = 0; x < width; ++x, pixels += kChannels, to += step) {
    const float value =
        channel.mix[0] * pixels[0] + channel.mix[1] * pixels[1] + channel.mix[2] * pixels[2];
    *to = ToElement<T>(value * channel.factor + channel.offset);
  }
}

template <typename T>
void Write(const Picture<float>& picture, const PixelFormat& format, bool mirror, T* to) {
  const int channels = format.channels();
  const int64_t width = picture.width;
  const int64_t step = format.channels_last ? channels : 1;
  for (int c = 0; c < channels; ++c) {
    const Channel channel = ChannelOf(format, c);
    T* const plane = format.channels_last ? to + c : to + c * width * picture.height;
    for (int64_t y = 0; y < picture.height; ++y) {
      const float* const row = picture.pixels.data() + y * width * kChannels;
      T* const first = plane + (y * width + (mirror ? width - 1 : 0)) * step;
      WriteRow(row, picture.width, channel, first, mirror ? -step : step);
    }
  }
}

}  // namespace

Shape ShapeOf(int width, int height, const PixelFormat& format) {
  const int channels = format.channels();
  return format.channels_last ? Shape{height, width, channels} : Shape{channels, height, width};
}

bool HoldsPixels(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
         dtype == DType::kUInt8 || dtype == DType::kInt32;
}

absl::Status WritePixels(const Picture<float>& picture, const PixelFormat& format, bool mirror,
                         int64_t index, Tensor& batch) {
  const int64_t begin = index * ShapeOf(picture.width, picture.height, format).numel();
  const auto write = [&](auto* elements) {
    Write(picture, format, mirror, elements + begin);
    return absl::OkStatus();
  };
  switch (batch.dtype) {
    case DType::kFloat32:
      return write(batch.mutable_data<float>());
    case DType::kFloat16:
      return write(batch.mutable_data<float16>());
    case DType::kBFloat16:
      return write(batch.mutable_data<bfloat16>());
    case DType::kUInt8:
      return write(batch.mutable_data<uint8_t>());
    case DType::kInt32:
      return write(batch.mutable_data<int32_t>());
    default:
      return InvalidArgument("no picture can be fed as ", Name(batch.dtype));
  }
}

}  // namespace interp
