// grid_sampler: attributes, shapes and the neighbours of a point, for both directions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/read_choice.h"

namespace interp {

inline constexpr int kMaxGridAxes = 3;

enum class GridPadding { kZeros, kBorder, kReflection };

struct GridAttrs {
  bool nearest, align_corners;
  GridPadding padding;
};

inline GridAttrs ReadGridAttrs(AttrReader& reader) {
  return {.nearest = ReadChoice<bool>(reader, "mode", {{"bilinear", false}, {"nearest", true}}),
          .align_corners = reader.Bool("align_corners", true),
          .padding = ReadChoice<GridPadding>(reader, "padding_mode",
                                             {{"zeros", GridPadding::kZeros},
                                              {"border", GridPadding::kBorder},
                                              {"reflection", GridPadding::kReflection}})};
}

// The shape of Output. Errors name the slots.
inline absl::StatusOr<Shape> GridOutputShape(const Shape& x, const Shape& grid) {
  if (x.rank() != 4 && x.rank() != 5) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 4 or 5 dims");
  }
  if (grid.rank() != x.rank() || grid[0] != x[0] || grid.back() != x.rank() - 2) {
    return InvalidArgument("input 'Grid' has shape ", ToString(grid), " for 'X' ", ToString(x),
                           ", expected [", x[0], x.rank() == 4 ? ",H,W,2]" : ",D,H,W,3]");
  }
  Shape out = x;
  for (int i = 2; i < x.rank(); ++i) out[i] = grid[i - 1];
  return out;
}

template <typename T>
T Reflect(T position, T period) {
  const T magnitude = std::abs(position);
  const T rest = magnitude - std::floor(magnitude / period) * period;
  return std::min(rest, period - rest);
}

// The pixel coordinate of `value` in [-1, 1] on an axis of `size` pixels, after padding.
template <typename T>
T PixelOf(T value, int64_t size, const GridAttrs& attrs) {
  const T last = static_cast<T>(size - 1), half = static_cast<T>(0.5);
  T at = attrs.align_corners ? (value + 1) * (last * half)
                             : (value + 1) * (static_cast<T>(size) * half) - half;
  if (attrs.padding == GridPadding::kReflection) {
    if (attrs.align_corners) return size == 1 ? T{0} : Reflect(at, 2 * last);
    at = Reflect(at + half, 2 * static_cast<T>(size)) - half;
  }
  return attrs.padding == GridPadding::kZeros ? at : std::min(std::max(at, T{0}), last);
}

// One or both neighbours on an axis; a neighbour outside the image has no element.
template <typename T>
struct AxisNeighbours {
  std::array<int64_t, 2> index = {-1, -1};
  std::array<T, 2> weight = {0, 0};

  void Set(int i, T position, T w, int64_t size) {
    const bool inside = position >= 0 && position <= static_cast<T>(size - 1);
    index[i] = inside ? static_cast<int64_t>(position) : -1;
    weight[i] = w;
  }
};

template <typename T>
AxisNeighbours<T> NeighboursOf(T position, int64_t size, const GridAttrs& attrs, bool volume) {
  AxisNeighbours<T> neighbours;
  if (attrs.nearest) {
    // In volumes Paddle asks whether the point is inside before it rounds.
    const bool outside = volume && !(position >= 0 && position <= static_cast<T>(size - 1));
    neighbours.Set(0, outside ? T{-1} : std::round(position), 1, size);
    return neighbours;
  }
  const T low = std::floor(position);
  neighbours.Set(0, low, low + 1 - position, size);
  neighbours.Set(1, low + 1, position - low, size);
  return neighbours;
}

// Where a point's neighbours lie in a channel, and what they count. A weight is that of all axes
// multiplied; neighbours outside stand as element 0 with `inside` false.
template <typename T>
struct Neighbours {
  std::array<int64_t, 1 << kMaxGridAxes> offset;
  std::array<T, 1 << kMaxGridAxes> weight;
  std::array<bool, 1 << kMaxGridAxes> inside;
  int count = 0;
};

// `point` has x first; `sizes` are those of the axes from the outermost on.
template <typename T>
Neighbours<T> NeighboursOf(const T* point, absl::Span<const int64_t> sizes,
                           const GridAttrs& attrs) {
  const int axes = static_cast<int>(sizes.size());
  Neighbours<T> all;
  all.count = 1;
  all.offset[0] = 0;
  all.weight[0] = 1;
  all.inside[0] = true;
  int64_t stride = 1;
  for (int axis = axes - 1; axis >= 0; --axis) {
    const int64_t size = sizes[axis];
    const T position = PixelOf(point[axes - 1 - axis], size, attrs);
    const AxisNeighbours<T> here = NeighboursOf(position, size, attrs, axes == 3);
    const int sides = attrs.nearest ? 1 : 2;
    for (int k = sides * all.count - 1; k >= 0; --k) {  // from the end: entries are read later
      const int side = k / all.count, from = k % all.count;
      all.inside[k] = all.inside[from] && here.index[side] >= 0;
      all.offset[k] = all.inside[k] ? all.offset[from] + here.index[side] * stride : 0;
      all.weight[k] = all.weight[from] * here.weight[side];
    }
    all.count *= sides;
    stride *= size;
  }
  return all;
}

}  // namespace interp
