// What regions and anchors are to learn: overlaps with true boxes, offsets to them, and samples.
//
// Boxes count pixels: one from 3 to 3 is one pixel wide. The arithmetic is Paddle's to the last
// bit, as comparisons of overlaps decide what is foreground.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "core/resource/distributions.h"

namespace interp {

// Overlaps that differ by less count as equal.
inline constexpr float kOverlapTolerance = 0.00001F;

template <typename T>
using Box = std::array<T, 4>;

template <typename T>
Box<T> Scaled(const T* box, T scale) {
  return {box[0] * scale, box[1] * scale, box[2] * scale, box[3] * scale};
}

// Intersection over union; 0 for boxes that are apart.
template <typename T>
T PixelOverlap(const T* a, const T* b) {
  const T area_a = (a[2] - a[0] + 1) * (a[3] - a[1] + 1);
  const T area_b = (b[2] - b[0] + 1) * (b[3] - b[1] + 1);
  const T width = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]) + 1, T{0});
  const T height = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]) + 1, T{0});
  const T inter = width * height;
  return inter == 0 ? T{0} : inter / (area_a + area_b - inter);
}

// The offsets that move and stretch `from` to `to`: of the centre by the size, logarithms of sizes.
template <typename T>
Box<T> BoxOffsets(const T* from, const T* to) {
  Box<T> offsets;
  for (int axis = 0; axis < 2; ++axis) {
    const T size = from[2 + axis] - from[axis] + 1;
    const T centre = static_cast<T>(from[axis] + 0.5 * size);
    const T to_size = to[2 + axis] - to[axis] + 1;
    const T to_centre = static_cast<T>(to[axis] + 0.5 * to_size);
    offsets[axis] = (to_centre - centre) / size;
    offsets[2 + axis] = std::log(to_size / size);
  }
  return offsets;
}

// Shortens a list to `count` elements: the first ones, or with a stream a sample (a reservoir) by
// one of its parts.
template <typename Element>
void KeepSample(std::vector<Element>& list, int64_t count,
                const std::optional<RandomStream>& stream, uint64_t part) {
  if (std::ssize(list) <= count) return;
  if (stream.has_value()) {
    const RandomStream own = stream->Split(part);
    for (int64_t i = count; i < std::ssize(list); ++i) {
      const double place = static_cast<double>(UnitFloat(own.Word(static_cast<uint64_t>(i)))) *
                           static_cast<double>(i);
      if (const auto at = static_cast<int64_t>(place); at < count) std::swap(list[at], list[i]);
    }
  }
  list.resize(static_cast<size_t>(count));
}

// Gives output `slot`, where there is one, a shape, a LoD and elements.
template <typename T>
absl::Status WriteList(KernelContext& ctx, int slot, const Shape& shape,
                       const std::vector<T>& values, const Lod& lod) {
  Tensor* const out = ctx.optional_output(slot);
  if (out == nullptr) return absl::OkStatus();
  out->shape = shape;
  out->lod = lod;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(*out));
  std::copy(values.begin(), values.end(), out->mutable_data<T>());
  return absl::OkStatus();
}

// InvalidArgument unless input `slot`, called `name`, has that many rows, and columns or more.
inline absl::Status CheckRows(const OpContext& ctx, int slot, absl::string_view name, int64_t rows,
                              int64_t columns) {
  const Shape& shape = ctx.input(slot).shape;
  const bool fits = shape.rank() == 2 && shape[1] >= columns && shape[0] == rows;
  if (fits) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected [", rows,
                         ",", columns, "]");
}

// The same for boxes.
inline absl::Status CheckBoxes(const OpContext& ctx, int slot, absl::string_view name) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() == 2 && shape[1] == 4) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape),
                         ", expected boxes [N,4]");
}

// The integers of input `slot`, called `name`: one for each of `rows`.
inline absl::StatusOr<std::vector<int64_t>> IntegersOf(const OpContext& ctx, int slot,
                                                       absl::string_view name, int64_t rows) {
  const Tensor& tensor = ctx.input(slot);
  if (tensor.numel() != rows) {
    return InvalidArgument("input '", name, "' has shape ", ToString(tensor.shape), ", expected [",
                           rows, ",1]");
  }
  return InferContext::Integers(tensor);
}

}  // namespace interp
