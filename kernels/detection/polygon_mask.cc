#include "kernels/detection/polygon_mask.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

namespace interp {
namespace {

constexpr int64_t kFine = 5;    // steps in a cell
constexpr int64_t kCentre = 2;  // the step in the middle of one
constexpr double kFarthest = 1e9;

// In steps.
struct FinePoint {
  int64_t x, y;
};

int64_t Rounded(double value) {
  const double down = std::floor(value + 0.5);
  if (!(down > -kFarthest)) return static_cast<int64_t>(-kFarthest);
  return static_cast<int64_t>(std::min(down, kFarthest));
}

FinePoint FineOf(const float* point) {
  return {Rounded(double{kFine} * point[0]), Rounded(double{kFine} * point[1])};
}

// Where boundaries cross the middles of columns. Column after column, a cell is covered if an odd
// number of crossings lies before it: each column has an even number.
class Crossings {
 public:
  explicit Crossings(int64_t size) : size_(size), odd_(size * size) {}

  void AddEdge(FinePoint from, FinePoint to) {
    const int64_t width = std::abs(to.x - from.x), height = std::abs(to.y - from.y);
    if (width == 0) return;
    if (width >= height) {
      if (from.x > to.x) std::swap(from, to);
      AddFlat(from, to, width);
    } else {
      if (from.y > to.y) std::swap(from, to);
      AddSteep(from, to, height);
    }
  }

  void Cover(absl::Span<uint8_t> mask) const {
    bool covered = false;
    for (int64_t i = 0; i < std::ssize(odd_); ++i) {
      covered = covered != odd_[i];
      if (covered) mask[i % size_ * size_ + i / size_] = 1;
    }
  }

 private:
  // One step of x at a time.
  void AddFlat(FinePoint from, FinePoint to, int64_t width) {
    const double slope = static_cast<double>(to.y - from.y) / static_cast<double>(width);
    const auto y = [&](int64_t step) {
      return Rounded(static_cast<double>(from.y) + slope * static_cast<double>(step));
    };
    for (int64_t column = 0; column < size_; ++column) {
      const int64_t step = kFine * column + kCentre - from.x;
      if (step >= 0 && step < width) Cross(column, std::min(y(step), y(step + 1)));
    }
  }

  // One step of y at a time, of which x goes along by one or none.
  void AddSteep(FinePoint from, FinePoint to, int64_t height) {
    const double slope = static_cast<double>(to.x - from.x) / static_cast<double>(height);
    const auto x = [&](int64_t step) {
      return Rounded(static_cast<double>(from.x) + slope * static_cast<double>(step));
    };
    const bool right = slope > 0;
    for (int64_t column = 0; column < size_; ++column) {
      const int64_t middle = kFine * column + kCentre;
      const auto is_beyond = [&](int64_t step) {
        return right ? x(step) > middle : x(step) <= middle;
      };
      if (is_beyond(0) || !is_beyond(height)) continue;
      int64_t before = 0, beyond = height;
      while (beyond - before > 1) {
        const int64_t between = before + (beyond - before) / 2;
        (is_beyond(between) ? beyond : before) = between;
      }
      Cross(column, from.y + before);
    }
  }

  // `y` in steps: the first cell whose middle is not above it.
  void Cross(int64_t column, int64_t y) {
    const int64_t above = std::max<int64_t>(y - kCentre, 0);
    const int64_t row = std::min((above + kFine - 1) / kFine, size_);
    const int64_t cell = column * size_ + row;
    if (cell < std::ssize(odd_)) odd_[cell] = !odd_[cell];
  }

  const int64_t size_;
  std::vector<bool> odd_;  // column by column
};

}  // namespace

void CoverPolygon(absl::Span<const float> points, int64_t size, absl::Span<uint8_t> mask) {
  Crossings crossings(size);
  const size_t count = points.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    crossings.AddEdge(FineOf(&points[2 * i]), FineOf(&points[2 * ((i + 1) % count)]));
  }
  crossings.Cover(mask);
}

}  // namespace interp
