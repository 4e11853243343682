#include "digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace interp::examples {
namespace {

constexpr int kPixels = kDigitSize * kDigitSize;

// --- random numbers, the same with every standard library ---

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  double Normal(double deviation) {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform(0, 1)));
    return deviation * radius * std::cos(Uniform(0, 2 * std::numbers::pi));
  }
  int Digit() { return static_cast<int>(Uniform(0, 10)); }

 private:
  std::mt19937_64 bits_;
};

// --- strokes ---

struct Point {
  double x = 0;
  double y = 0;  // downwards
};
using Stroke = std::vector<Point>;

// Part of an ellipse, angles in degrees.
Stroke Arc(Point center, double width, double height, double start, double stop) {
  constexpr int kPoints = 24;
  Stroke stroke;
  for (int i = 0; i < kPoints; ++i) {
    const double angle = (start + (stop - start) * i / (kPoints - 1)) * std::numbers::pi / 180;
    stroke.push_back({center.x + width * std::cos(angle), center.y + height * std::sin(angle)});
  }
  return stroke;
}

// The digits in a box from -1 to 1.
const std::array<std::vector<Stroke>, 10>& Strokes() {
  static const auto& strokes = *new std::array<std::vector<Stroke>, 10>{{
      {Arc({0, 0}, 0.6, 0.95, 0, 360)},
      {{{-0.35, -0.6}, {0.1, -0.95}, {0.1, 0.95}}},
      {Arc({0, -0.45}, 0.55, 0.5, 180, 370), {{0.54, -0.36}, {-0.6, 0.95}, {0.65, 0.95}}},
      {Arc({-0.05, -0.47}, 0.52, 0.47, 200, 450), Arc({-0.05, 0.45}, 0.6, 0.5, 270, 520)},
      {{{0.25, 0.95}, {0.25, -0.95}, {-0.65, 0.35}, {0.65, 0.35}}},
      {{{0.55, -0.95}, {-0.4, -0.95}, {-0.5, -0.1}}, Arc({-0.05, 0.35}, 0.6, 0.6, 225, 500)},
      {Arc({0.45, 0}, 1, 1, 255, 165), Arc({0, 0.4}, 0.55, 0.55, 0, 360)},
      {{{-0.6, -0.95}, {0.6, -0.95}, {-0.15, 0.95}}},
      {Arc({0, -0.47}, 0.48, 0.46, 0, 360), Arc({0, 0.45}, 0.58, 0.5, 0, 360)},
      {Arc({0, -0.4}, 0.55, 0.55, 0, 360), Arc({-0.45, 0}, 1, 1, -15, 75)},
  }};
  return strokes;
}

// From the box of a digit to pixels: slanted, scaled, turned, shifted.
class Placement {
 public:
  explicit Placement(Random& random)
      : angle_(random.Uniform(-0.2, 0.2)),
        slant_(random.Uniform(-0.25, 0.25)),
        scale_{random.Uniform(0.28, 0.4) * kDigitSize, random.Uniform(0.28, 0.4) * kDigitSize},
        shift_{kDigitSize / 2.0 + random.Uniform(-2.5, 2.5),
               kDigitSize / 2.0 + random.Uniform(-2.5, 2.5)} {}

  Point operator()(Point p) const {
    const Point scaled{(p.x + slant_ * p.y) * scale_.x, p.y * scale_.y};
    return {std::cos(angle_) * scaled.x - std::sin(angle_) * scaled.y + shift_.x,
            std::sin(angle_) * scaled.x + std::cos(angle_) * scaled.y + shift_.y};
  }

 private:
  double angle_;
  double slant_;
  Point scale_;
  Point shift_;
};

// --- pixels ---

constexpr double kMostThickness = 1.9;

double SquaredDistance(Point p, Point start, Point stop) {
  const Point along{stop.x - start.x, stop.y - start.y};
  const double length2 = std::max(along.x * along.x + along.y * along.y, 1e-12);
  const double t = ((p.x - start.x) * along.x + (p.y - start.y) * along.y) / length2;
  const double nearest = std::clamp(t, 0.0, 1.0);
  const double dx = p.x - start.x - nearest * along.x;
  const double dy = p.y - start.y - nearest * along.y;
  return dx * dx + dy * dy;
}

// Lowers the distances of the pixels that the segment may colour.
void MeasureSegment(Point start, Point stop, std::array<double, kPixels>& distances2) {
  const auto first = [](double a, double b) {
    return std::clamp(static_cast<int>(std::min(a, b) - kMostThickness - 1), 0, kDigitSize);
  };
  const auto last = [](double a, double b) {
    return std::clamp(static_cast<int>(std::max(a, b) + kMostThickness + 1), 0, kDigitSize);
  };
  for (int row = first(start.y, stop.y); row < last(start.y, stop.y); ++row) {
    for (int column = first(start.x, stop.x); column < last(start.x, stop.x); ++column) {
      double& distance2 = distances2[row * kDigitSize + column];
      distance2 = std::min(distance2, SquaredDistance({column + 0.5, row + 0.5}, start, stop));
    }
  }
}

void Draw(int digit, Random& random, float* pixels) {
  const Placement place(random);
  std::array<double, kPixels> distances2;
  distances2.fill(kPixels);
  for (const Stroke& stroke : Strokes()[digit]) {
    Stroke placed;
    for (const Point p : stroke) {
      placed.push_back(place({p.x + random.Normal(0.02), p.y + random.Normal(0.02)}));
    }
    for (size_t i = 1; i < placed.size(); ++i) MeasureSegment(placed[i - 1], placed[i], distances2);
  }
  const double thickness = random.Uniform(0.9, kMostThickness);
  for (int i = 0; i < kPixels; ++i) {
    const double ink = std::clamp(thickness - std::sqrt(distances2[i]), 0.0, 1.0);
    pixels[i] = static_cast<float>(std::clamp(ink + random.Normal(0.08), 0.0, 1.0));
  }
}

Tensor RowsOf(const Tensor& tensor, int64_t begin, int64_t end) {
  Shape shape = tensor.shape;
  shape[0] = end - begin;
  const int64_t row_bytes =
      shape.numel(1, shape.rank()) * static_cast<int64_t>(SizeOf(tensor.dtype));
  return Tensor::Borrow(tensor.dtype, shape,
                        static_cast<const char*>(tensor.raw_data()) + begin * row_bytes);
}

}  // namespace

absl::StatusOr<Digits> DrawDigits(int64_t count, uint64_t seed) {
  if (count < 0) return InvalidArgument("a set of ", count, " digits");
  Digits digits;
  digits.images.dtype = DType::kFloat32;
  digits.images.shape = {count, 1, kDigitSize, kDigitSize};
  digits.labels.dtype = DType::kInt64;
  digits.labels.shape = {count, 1};
  INTERP_RETURN_IF_ERROR(digits.images.Allocate(SystemAllocator()));
  INTERP_RETURN_IF_ERROR(digits.labels.Allocate(SystemAllocator()));
  Random random(seed);
  float* const pixels = digits.images.mutable_data<float>();
  int64_t* const labels = digits.labels.mutable_data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int digit = random.Digit();
    labels[i] = digit;
    Draw(digit, random, pixels + i * kPixels);
  }
  return digits;
}

Digits Rows(const Digits& digits, int64_t begin, int64_t end) {
  return {RowsOf(digits.images, begin, end), RowsOf(digits.labels, begin, end)};
}

}  // namespace interp::examples
