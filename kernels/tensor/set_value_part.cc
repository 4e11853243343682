#include "kernels/tensor/set_value_part.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "kernels/tensor/slice_bounds.h"

namespace interp::set_value {
namespace {

absl::StatusOr<Range> ResolveRange(int64_t start, int64_t end, int64_t step, int64_t length) {
  if (step == 0) return InvalidArgument("attribute 'steps' has a 0");
  if (length == 0) return Range{};
  const bool forward = step > 0;
  start = std::clamp<int64_t>(start < 0 ? start + length : start, 0, forward ? length : length - 1);
  // Backwards -1 stands before the first index; from -2 on the end counts from the back.
  if (forward) {
    end = std::clamp<int64_t>(end < 0 ? end + length : end, 0, length);
  } else {
    end = std::clamp<int64_t>(end < -1 ? end + length : end, -1, length);
  }
  if (forward ? end < start : start < end) {
    return InvalidArgument("a part from ", start, " to ", end, " with step ", step, " is no part");
  }
  const int64_t distance = forward ? end - start : start - end;
  if (distance == 0) return Range{};
  const int64_t last = distance - 1;
  // A step beyond the part takes one index; so does the smallest integer, which has no negative.
  const int64_t size = step < -last ? last + 1 : std::min(forward ? step : -step, last + 1);
  const int64_t count = last / size + 1;
  return Range{forward ? start : start - (count - 1) * size, size, count, !forward};
}

// The box in Out as the value sees it: without indexed dimensions, with new ones. Source strides
// are 0.
absl::StatusOr<CopyDims> BoxDims(const PartAttrs& attrs, absl::Span<const Range> ranges,
                                 const Strides& strides) {
  CopyDims dims;
  size_t next_new = 0;
  for (int i = 0; i <= static_cast<int>(ranges.size()); ++i) {
    const bool last = i == static_cast<int>(ranges.size());
    for (; next_new < attrs.none_axes.size() && (last || attrs.none_axes[next_new] <= i);
         ++next_new) {
      dims.push_back({});
    }
    if (last) break;
    if (!absl::c_linear_search(attrs.decrease_axes, int64_t{i})) {
      dims.push_back({ranges[i].count, 0, strides[i] * ranges[i].step});
    } else if (ranges[i].count != 1) {
      return InvalidArgument("'decrease_axes' drops dimension ", i, " of length ", ranges[i].count,
                             ", expected 1");
    }
  }
  if (dims.size() > kMaxRank) return InvalidArgument("the part has rank ", dims.size());
  return dims;
}

// Sets the source strides for a value of this shape. Leading dimensions of length 1 do not count.
absl::Status Broadcast(const Shape& value, CopyDims& dims) {
  int leading = 0;
  while (leading < value.rank() && value[leading] == 1) ++leading;
  const int rank = value.rank() - leading;
  bool fits = rank <= static_cast<int>(dims.size());
  int64_t stride = 1;
  for (int back = 1; fits && back <= rank; ++back) {
    CopyDim& dim = dims[dims.size() - static_cast<size_t>(back)];
    const int64_t length = value.back(back);
    fits = length == 1 || length == dim.size;
    dim.src_stride = length == 1 ? 0 : stride;
    stride *= length;
  }
  if (fits) return absl::OkStatus();
  std::vector<int64_t> part;
  for (size_t i = 0; i < dims.size() && i < kMaxRank; ++i) part.push_back(dims[i].size);
  return InvalidArgument("the value has shape ", ToString(value), ", which does not fit the part ",
                         ToString(Shape(part)));
}

// Turns the dimensions that are written from the back: where the value starts.
int64_t Reverse(const PartAttrs& attrs, absl::Span<const Range> ranges, CopyDims& dims) {
  int64_t start = 0;
  size_t at = 0;
  size_t next_new = 0;
  for (int i = 0; i < static_cast<int>(ranges.size()); ++i) {
    for (; next_new < attrs.none_axes.size() && attrs.none_axes[next_new] <= i; ++next_new) ++at;
    if (absl::c_linear_search(attrs.decrease_axes, int64_t{i})) continue;
    CopyDim& dim = dims[at++];
    if (!ranges[i].reversed) continue;
    start += (dim.size - 1) * dim.src_stride;
    dim.src_stride = -dim.src_stride;
  }
  return start;
}

}  // namespace

PartAttrs ReadPartAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "axes"),          ReadIntListAttr(reader, "starts"),
          ReadIntListAttr(reader, "ends"),          ReadIntListAttr(reader, "steps"),
          ReadIntListAttr(reader, "decrease_axes"), ReadIntListAttr(reader, "none_axes")};
}

absl::StatusOr<Ranges> ResolveRanges(const OpContext& ctx, const PartSlots& slots,
                                     const PartAttrs& attrs, const Shape& shape) {
  const SliceList lists[] = {{{.name = "starts", .tensor = -1, .list = slots.starts}, attrs.starts},
                             {{.name = "ends", .tensor = -1, .list = slots.ends}, attrs.ends},
                             {{.name = "steps", .tensor = -1, .list = slots.steps}, attrs.steps}};
  INTERP_ASSIGN_OR_RETURN(
      const SliceBounds bounds,
      ReadSliceBounds(ctx, attrs.axes, attrs.decrease_axes, shape.rank(), lists));
  Ranges ranges;
  for (const int64_t length : shape) ranges.push_back({.count = length});
  uint32_t seen = 0;
  for (const auto& [axis, start, end, step, dropped] : bounds) {
    if ((seen & (1u << axis)) != 0)
      return InvalidArgument("attribute 'axes' lists ", axis, " twice");
    seen |= 1u << axis;
    INTERP_ASSIGN_OR_RETURN(ranges[axis], ResolveRange(start, end, step, shape[axis]));
  }
  return ranges;
}

bool IsEmpty(const Ranges& ranges) {
  return absl::c_any_of(ranges, [](const Range& range) { return range.count == 0; });
}

absl::StatusOr<Part> LayOut(const PartAttrs& attrs, const Ranges& ranges, const Strides& strides,
                            const Shape& value) {
  Part part;
  INTERP_ASSIGN_OR_RETURN(part.dims, BoxDims(attrs, ranges, strides));
  INTERP_RETURN_IF_ERROR(Broadcast(value, part.dims));
  part.value_start = Reverse(attrs, ranges, part.dims);
  for (size_t i = 0; i < ranges.size(); ++i) part.start += ranges[i].first * strides[i];
  return part;
}

}  // namespace interp::set_value
