#include "core/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace interp {
namespace {

constexpr int kLanes = 4;  // of a pixel in a register; the last one holds nothing

// For each output position the positions [first, first + count) of the input and their weights.
struct Taps {
  struct Output {
    int first = 0;
    int count = 0;
    size_t weights = 0;  // where they begin
  };
  std::vector<Output> outputs;
  std::vector<float> weights;
};

// Of `size` positions, those in [begin, begin + length) become `to`.
Taps MakeTaps(double begin, double length, int size, int to) {
  const double scale = length / to;
  const double radius = std::max(1.0, scale);
  Taps taps;
  std::vector<double> weights;
  for (int i = 0; i < to; ++i) {
    const double centre = begin + (i + 0.5) * scale;
    const int first = std::clamp(static_cast<int>(std::floor(centre - radius + 0.5)), 0, size - 1);
    const int last =
        std::clamp(static_cast<int>(std::floor(centre + radius + 0.5)), first + 1, size);
    double sum = 0;
    weights.clear();
    for (int j = first; j < last; ++j) {
      weights.push_back(std::max(0.0, 1 - std::abs(j + 0.5 - centre) / radius));
      sum += weights.back();
    }
    taps.outputs.push_back({.first = first, .count = last - first, .weights = taps.weights.size()});
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

// Sets row[begin, end) to the weighted sum of rows of the picture.
void MixRows(const PictureView& picture, const Taps::Output& tap, const float* weights,
             int64_t begin, int64_t end, float* row) {
  for (int k = 0; k < tap.count; ++k) {
    const uint8_t* const from = picture.pixels + (tap.first + k) * picture.row_bytes;
    const float weight = weights[k];
    if (k == 0) {
      for (int64_t i = begin; i < end; ++i) row[i] = weight * static_cast<float>(from[i]);
    } else {
      for (int64_t i = begin; i < end; ++i) row[i] += weight * static_cast<float>(from[i]);
    }
  }
}

using Pixel = float __attribute__((vector_size(kLanes * sizeof(float))));

// `row` and `to` have room for one more lane than they have channels.
void MixColumns(const float* row, const Taps& taps, float* to) {
  for (const Taps::Output& tap : taps.outputs) {
    Pixel sum = {};
    for (int k = 0; k < tap.count; ++k) {
      Pixel pixel;
      std::memcpy(&pixel, row + static_cast<int64_t>(tap.first + k) * Picture<float>::kChannels,
                  sizeof(pixel));
      sum += taps.weights[tap.weights + k] * pixel;
    }
    std::memcpy(to, &sum, sizeof(sum));
    to += Picture<float>::kChannels;
  }
}

}  // namespace

Picture<float> Resample(const PictureView& picture, const PictureWindow& window, int width,
                        int height) {
  const Taps rows = MakeTaps(window.top, window.height, picture.height, height);
  const Taps columns = MakeTaps(window.left, window.width, picture.width, width);
  const int64_t begin = int64_t{columns.outputs.front().first} * Picture<float>::kChannels;
  const Taps::Output& right = columns.outputs.back();
  const int64_t end = int64_t{right.first + right.count} * Picture<float>::kChannels;
  std::vector<float> row(end + 1);
  Picture<float> out{width, height};
  const int64_t row_size = int64_t{width} * Picture<float>::kChannels;
  out.pixels.resize(height * row_size + 1);
  for (int y = 0; y < height; ++y) {
    const Taps::Output& tap = rows.outputs[y];
    MixRows(picture, tap, rows.weights.data() + tap.weights, begin, end, row.data());
    MixColumns(row.data(), columns, out.pixels.data() + y * row_size);
  }
  out.pixels.pop_back();
  return out;
}

Picture<uint8_t> ToBytes(const Picture<float>& picture) {
  Picture<uint8_t> bytes{picture.width, picture.height};
  bytes.pixels.reserve(picture.pixels.size());
  for (const float pixel : picture.pixels) {
    bytes.pixels.push_back(static_cast<uint8_t>(std::clamp(pixel + 0.5F, 0.0F, 255.0F)));
  }
  return bytes;
}

}  // namespace interp
