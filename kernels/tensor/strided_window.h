// What strided_slice takes of its input; shared with its gradient, whose slots stand in the same
// order.
//
// Bounds follow Paddle: negative ones count from the end and are clipped to 0, but an end of -1
// with a negative stride means "through element 0". An end further below 0 therefore leaves element
// 0 out.
#pragma once

#include <algorithm>

#include "core/op_def.h"
#include "kernels/tensor/slice_bounds.h"
#include "kernels/util/shape_args.h"

namespace interp::strided_slice {

constexpr int kInput = 0;
constexpr IntSlots kStarts = {.name = "starts", .tensor = 1, .list = 2};
constexpr IntSlots kEnds = {.name = "ends", .tensor = 3, .list = 4};
constexpr IntSlots kStrides = {.name = "strides", .tensor = 5, .list = 6};

struct StridedSliceAttrs {
  IntList axes;
  IntList starts;
  IntList ends;
  IntList strides;
  IntList decrease_axis;
};

inline StridedSliceAttrs ReadStridedSliceAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "axes"), ReadIntListAttr(reader, "starts"),
          ReadIntListAttr(reader, "ends"), ReadIntListAttr(reader, "strides"),
          ReadIntListAttr(reader, "decrease_axis")};
}

// What is taken of one dimension: `size` elements from `first`, `step` apart.
struct Progression {
  int64_t first = 0;
  int64_t step = 1;
  int64_t size = 0;
};

inline absl::StatusOr<Progression> FindProgression(int64_t length, int64_t start, int64_t end,
                                                   int64_t step) {
  if (step == 0) return InvalidArgument("'strides' has a 0");
  step = std::clamp(step, -std::max<int64_t>(length, 1), std::max<int64_t>(length, 1));
  if (start < 0) start = std::max<int64_t>(start + length, 0);
  const bool through_zero = end == -1 && step < 0;
  if (end < 0 && !through_zero) end = std::max<int64_t>(end + length, 0);
  if (step > 0 ? start > end : start < end) {
    return InvalidArgument("slice from ", start, " to ", end, " by ", step, " goes the wrong way");
  }
  Progression p = {.step = step};
  if (step > 0) {
    p.first = std::min(start, length);
    p.size = (std::min(end, length) - p.first + step - 1) / step;
  } else {
    p.first = std::min(start, length - 1);
    p.size = (p.first - std::min(end, length - 1) - step - 1) / -step;
  }
  return p;
}

struct Window {
  Shape size;  // before dimensions are dropped
  std::array<Progression, kMaxRank> along;
};

inline absl::StatusOr<Window> FindWindow(const OpContext& ctx, const Shape& shape) {
  const StridedSliceAttrs& attrs = ctx.attrs<StridedSliceAttrs>();
  const SliceList lists[] = {
      {kStarts, attrs.starts}, {kEnds, attrs.ends}, {kStrides, attrs.strides}};
  INTERP_ASSIGN_OR_RETURN(
      const SliceBounds bounds,
      ReadSliceBounds(ctx, attrs.axes, attrs.decrease_axis, shape.rank(), lists));
  Window window = {.size = shape, .along = {}};
  for (const SliceBound& bound : bounds) {
    const int64_t length = shape[bound.axis];
    int64_t end = bound.end;
    // x[-1] arrives as the bounds -1 and 0 of a dropped dimension.
    if (bound.dropped && bound.start == -1 && end == 0) end = bound.step < 0 ? length - 2 : length;
    Progression& along = window.along[bound.axis];
    INTERP_ASSIGN_OR_RETURN(along, FindProgression(length, bound.start, end, bound.step));
    window.size[bound.axis] = along.size;
  }
  return window;
}

// What is taken of the tensor Input.
inline absl::StatusOr<Window> FindWindow(const OpContext& ctx) {
  return FindWindow(ctx, ctx.input(kInput).shape);
}

// What is taken of the elements of the array Input.
inline absl::StatusOr<Progression> FindElements(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Window window,
                          FindWindow(ctx, Shape{std::ssize(ctx.input_array(kInput))}));
  // Without axes it is all of them.
  if (ctx.attrs<StridedSliceAttrs>().axes.empty()) return Progression{.size = window.size[0]};
  return window.along[0];
}

// The inputs of a slice: Input, which has flags of its own, and tensors for the bounds.
inline std::vector<SlotDef> Inputs(int input_flags) {
  constexpr int kBound = kOptional | kAnyDType | kValueInInfer;
  return {{"Input", input_flags},
          {"StartsTensor", kBound},
          {"StartsTensorList", kBound | kVariadic},
          {"EndsTensor", kBound},
          {"EndsTensorList", kBound | kVariadic},
          {"StridesTensor", kBound},
          {"StridesTensorList", kBound | kVariadic}};
}

// Of the gradient, behind them.
constexpr int kOutGrad = 7;

}  // namespace interp::strided_slice
