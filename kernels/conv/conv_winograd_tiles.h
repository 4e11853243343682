// What the parts of Winograd's method share: the points, the transforms along an axis, and how
// images are cut into tiles. See conv_winograd.h.
// Long because the transforms and their adjoints are read side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/conv/conv_problem.h"
#include "kernels/product/gemm_tile.h"
#include "kernels/product/lanes.h"

namespace interp::nn::winograd {

inline constexpr int kTile = 4;    // outputs along an axis of a tile
inline constexpr int kWindow = 3;  // taps along an axis
inline constexpr int kPatch = 6;   // inputs along an axis of a tile
inline constexpr int kPoints = kPatch * kPatch;
inline constexpr int kTaps = kWindow * kWindow;
inline constexpr int64_t kLanes = VectorOf<float>::kLanes;
using Vector = VectorOf<float>::type;

// The points of interpolation, their squares and products.
inline constexpr float kA = 0.625F;
inline constexpr float kB = 1.5F;
inline constexpr float kAA = kA * kA;
inline constexpr float kBB = kB * kB;

// Elements are float or bfloat16; vectors are of float.
template <typename T>
Vector Load(const T* from) {
  return Lanes<T, kLanes>::Load(from);
}
template <typename T>
void Store(Vector value, T* to) {
  Lanes<T, kLanes>::Store(value, to);
}

// The first `count` elements, then zeros.
template <typename T>
Vector LoadPart(const T* from, int64_t count) {
  if (count == kLanes) return Load(from);
  T part[kLanes] = {};
  std::copy(from, from + count, part);
  return Load(part);
}
template <typename T>
void StorePart(Vector value, T* to, int64_t count) {
  if (count == kLanes) return Store(value, to);
  T part[kLanes];
  Store(value, part);
  std::copy(part, part + count, to);
}

// The values of six inputs along an axis at the six points: one row of B^T d.
inline void TransformPatch(const Vector (&d)[kPatch], Vector (&v)[kPatch]) {
  const Vector even_a = d[4] - kBB * d[2];
  const Vector odd_a = kA * d[3] - kA * kBB * d[1];
  const Vector even_b = d[4] - kAA * d[2];
  const Vector odd_b = kB * d[3] - kAA * kB * d[1];
  v[0] = kAA * kBB * d[0] - (kAA + kBB) * d[2] + d[4];
  v[1] = even_a + odd_a;
  v[2] = even_a - odd_a;
  v[3] = even_b + odd_b;
  v[4] = even_b - odd_b;
  v[5] = kAA * kBB * d[1] - (kAA + kBB) * d[3] + d[5];
}

// What scales the values of the taps at each pair of points.
inline constexpr float kScale0 = 1 / (kAA * kBB);
inline constexpr float kScaleA = 1 / (2 * kAA * (kAA - kBB));
inline constexpr float kScaleB = 1 / (2 * kBB * (kBB - kAA));

// Three taps along an axis at the six points: one row of G g.
inline void TransformTaps(const Vector (&g)[kWindow], Vector (&u)[kPatch]) {
  const Vector even_a = kScaleA * g[0] + kScaleA * kAA * g[2];
  const Vector odd_a = kScaleA * kA * g[1];
  const Vector even_b = kScaleB * g[0] + kScaleB * kBB * g[2];
  const Vector odd_b = kScaleB * kB * g[1];
  u[0] = kScale0 * g[0];
  u[1] = even_a + odd_a;
  u[2] = even_a - odd_a;
  u[3] = even_b + odd_b;
  u[4] = even_b - odd_b;
  u[5] = g[2];
}

// The adjoint of TransformTaps: G^T u.
inline void TransformTapsBack(const Vector (&u)[kPatch], Vector (&g)[kWindow]) {
  const Vector sum_a = kScaleA * (u[1] + u[2]);
  const Vector sum_b = kScaleB * (u[3] + u[4]);
  g[0] = kScale0 * u[0] + sum_a + sum_b;
  g[1] = kScaleA * kA * (u[1] - u[2]) + kScaleB * kB * (u[3] - u[4]);
  g[2] = kAA * sum_a + kBB * sum_b + u[5];
}

// Four outputs along an axis of sums at the six points: one row of A^T m.
inline void TransformBack(const Vector (&m)[kPatch], Vector (&y)[kTile]) {
  const Vector sum_a = m[1] + m[2];
  const Vector difference_a = m[1] - m[2];
  const Vector sum_b = m[3] + m[4];
  const Vector difference_b = m[3] - m[4];
  y[0] = m[0] + sum_a + sum_b;
  y[1] = kA * difference_a + kB * difference_b;
  y[2] = kAA * sum_a + kBB * sum_b;
  y[3] = kAA * kA * difference_a + kBB * kB * difference_b + m[5];
}

// The adjoint of TransformBack: A y.
inline void TransformOutputs(const Vector (&y)[kTile], Vector (&m)[kPatch]) {
  const Vector even_a = y[0] + kAA * y[2];
  const Vector odd_a = kA * y[1] + kAA * kA * y[3];
  const Vector even_b = y[0] + kBB * y[2];
  const Vector odd_b = kB * y[1] + kBB * kB * y[3];
  m[0] = y[0];
  m[1] = even_a + odd_a;
  m[2] = even_a - odd_a;
  m[3] = even_b + odd_b;
  m[4] = even_b - odd_b;
  m[5] = y[3];
}

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// An odd number of cache lines: arrays a power of two apart fall into the same few cache sets.
inline int64_t OddLines(int64_t floats) { return RoundUp(floats, 32) + 16; }

// The tiles of a batch of images. Of windows with a dilation each tile has outputs as far apart:
// they and their inputs are those of a window without, of every other pixel.
struct TileGrid {
  int64_t rows = 0;     // in an image
  int64_t columns = 0;  // in an image
  int64_t count = 0;    // in all
};

// The first outputs of tiles between which others begin: as many as the dilation.
inline int64_t PhasesOf(const WindowAxis& axis) { return std::min(axis.dilation, axis.out); }

inline int64_t TilesAlong(const WindowAxis& axis) {
  const int64_t span = kTile * axis.dilation;
  return (axis.out + span - 1) / span * PhasesOf(axis);
}

inline TileGrid GridOf(const ConvProblem& p) {
  TileGrid grid = {TilesAlong(p.window[0]), TilesAlong(p.window[1])};
  grid.count = p.batch * grid.rows * grid.columns;
  return grid;
}

// A tile's place: its image and the first of its outputs, which may lie beside the image.
struct TilePlace {
  int64_t image = 0;
  int64_t y = 0;
  int64_t x = 0;
};
inline TilePlace PlaceOf(const ConvProblem& p, const TileGrid& grid, int64_t tile) {
  const auto first = [](const WindowAxis& axis, int64_t at) {
    const int64_t phases = PhasesOf(axis);
    return at / phases * kTile * axis.dilation + at % phases;
  };
  const int64_t in_image = tile % (grid.rows * grid.columns);
  return {tile / (grid.rows * grid.columns), first(p.window[0], in_image / grid.columns),
          first(p.window[1], in_image % grid.columns)};
}

// The outputs of a tile that lie in the image, and the first of them.
struct TileOutputs {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_step = 0;
  int64_t column_step = 0;
};
inline TileOutputs OutputsOf(const ConvProblem& p, const TilePlace& place) {
  const WindowAxis& h = p.window[0];
  const WindowAxis& w = p.window[1];
  const auto inside = [](const WindowAxis& axis, int64_t first) {
    return std::clamp<int64_t>((axis.out - first + axis.dilation - 1) / axis.dilation, 0, kTile);
  };
  return {((place.image * h.out + place.y) * w.out + place.x) * p.out_channels, inside(h, place.y),
          inside(w, place.x), h.dilation * w.out * p.out_channels, w.dilation * p.out_channels};
}

// Transforms the inputs of a tile: those of a point go to points[point * step, in_channels). The
// last vector of channels overlaps the one before it. REQUIRES: in_channels >= kLanes.
template <typename T>
void TransformInputs(const ConvProblem& p, const TilePlace& place, const T* in, float* points,
                     int64_t step);

// True when the method can compute the case.
bool Computes(const ConvProblem& p);

// What the parts cost, in multiplications of vectors; measured on AVX-512.
inline constexpr double kTransformCost = 580;     // of a tile, for each vector of channels
inline constexpr double kByteCost = 1.0 / 6;      // of what comes from beyond the L2 cache
inline constexpr double kFilterElementCost = 40;  // of transforming an element of the filter
inline constexpr double kWorthwhile = 0.9;        // of the cost of direct sums

// Of the products and transforms of all tiles.
double TilesCost(const ConvProblem& p);
// Of oneDNN's direct sums, which use the widest vectors that the processor has.
double DirectCost(const ConvProblem& p, DType dtype);

}  // namespace interp::nn::winograd
