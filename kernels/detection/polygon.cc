#include "kernels/detection/polygon.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace interp {
namespace {

constexpr int kMaxEdges = 2 * kMaxCorners;
// Both ends of every edge and one crossing for each pair of edges.
constexpr int kMaxLevels = 2 * kMaxEdges + kMaxEdges * (kMaxEdges - 1) / 2;

struct Edge {
  double x0, y0, x1, y1;  // y0 <= y1
  double XAt(double y) const { return x0 + (x1 - x0) * ((y - y0) / (y1 - y0)); }
};

struct Edges {
  std::array<Edge, kMaxEdges> edge;
  int size = 0;

  void AddPolygon(absl::Span<const double> p) {
    for (size_t i = 0, n = p.size(); i < n; i += 2) {
      const size_t j = (i + 2) % n;
      const bool up = p[i + 1] <= p[j + 1];
      edge[size++] =
          up ? Edge{p[i], p[i + 1], p[j], p[j + 1]} : Edge{p[j], p[j + 1], p[i], p[i + 1]};
    }
  }
};

double Area(absl::Span<const double> p) {
  double twice = 0;
  for (size_t i = 0, n = p.size(); i < n; i += 2) {
    const size_t j = (i + 2) % n;
    twice += p[i] * p[j + 1] - p[i + 1] * p[j];
  }
  return std::abs(twice) / 2;
}

// The height at which two edges cross, NaN when they do not.
double CrossingLevel(const Edge& a, const Edge& b) {
  const double ax = a.x1 - a.x0, ay = a.y1 - a.y0, bx = b.x1 - b.x0, by = b.y1 - b.y0;
  const double cross = ax * by - ay * bx;
  if (cross == 0) return NAN;
  const double t = ((b.x0 - a.x0) * by - (b.y0 - a.y0) * bx) / cross;
  const double u = ((b.x0 - a.x0) * ay - (b.y0 - a.y0) * ax) / cross;
  return t >= 0 && t <= 1 && u >= 0 && u <= 1 ? a.y0 + t * ay : NAN;
}

// The sorted abscissae where `edges` [begin, end) cross the horizontal line at `y`.
int Crossings(const Edges& edges, int begin, int end, double y, double* xs) {
  int count = 0;
  for (int i = begin; i < end; ++i) {
    const Edge& e = edges.edge[i];
    if (e.y0 <= y && y < e.y1) xs[count++] = e.XAt(y);
  }
  std::sort(xs, xs + count);
  return count;
}

// Length of what the intervals [a0,a1], [a2,a3], ... and [b0,b1], ... have in common.
double CommonLength(const double* a, int a_count, const double* b, int b_count) {
  double length = 0;
  for (int i = 0, j = 0; i + 1 < a_count && j + 1 < b_count;) {
    length += std::max(0.0, std::min(a[i + 1], b[j + 1]) - std::max(a[i], b[j]));
    (a[i + 1] < b[j + 1] ? i : j) += 2;
  }
  return length;
}

// Cuts the plane at the height of every corner and crossing. Between two neighbouring cuts no edges
// cross, so the common length is linear in y and its value half way gives the area.
double IntersectionArea(absl::Span<const double> a, absl::Span<const double> b) {
  Edges edges;
  edges.AddPolygon(a);
  const int split = edges.size;
  edges.AddPolygon(b);
  std::array<double, kMaxLevels> levels;
  int num_levels = 0;
  for (int i = 0; i < edges.size; ++i) {
    levels[num_levels++] = edges.edge[i].y0;
    levels[num_levels++] = edges.edge[i].y1;
    for (int j = 0; j < i; ++j) {
      const double level = CrossingLevel(edges.edge[i], edges.edge[j]);
      if (!std::isnan(level)) levels[num_levels++] = level;
    }
  }
  std::sort(levels.begin(), levels.begin() + num_levels);
  double area = 0;
  for (int k = 0; k + 1 < num_levels; ++k) {
    const double height = levels[k + 1] - levels[k];
    if (height <= 0) continue;
    const double y = levels[k] + height / 2;
    std::array<double, kMaxCorners> xa, xb;
    const int a_count = Crossings(edges, 0, split, y, xa.data());
    const int b_count = Crossings(edges, split, edges.size, y, xb.data());
    area += height * CommonLength(xa.data(), a_count, xb.data(), b_count);
  }
  return area;
}

bool AllFinite(absl::Span<const double> p) {
  // Bounded well below overflow, since products of coordinates are formed.
  return std::all_of(p.begin(), p.end(), [](double v) { return std::abs(v) < 1e100; });
}

}  // namespace

double PolygonOverlap(absl::Span<const double> a, absl::Span<const double> b) {
  if (!AllFinite(a) || !AllFinite(b)) return 0;
  const double area_a = Area(a), area_b = Area(b);
  if (area_a == 0 || area_b == 0) return 0;
  const double common = IntersectionArea(a, b);
  return common == 0 ? 0 : common / (area_a + area_b - common);
}

}  // namespace interp
