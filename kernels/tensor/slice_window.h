// What slice takes of its input; shared with its gradient, whose slots stand in the same order.
#pragma once

#include <algorithm>

#include "core/op_def.h"
#include "kernels/tensor/slice_bounds.h"
#include "kernels/util/shape_args.h"

namespace interp::slice {

constexpr int kInput = 0;
constexpr IntSlots kStarts = {.name = "starts", .tensor = 1, .list = 3};
constexpr IntSlots kEnds = {.name = "ends", .tensor = 2, .list = 4};

struct SliceAttrs {
  IntList axes;
  IntList starts;
  IntList ends;
  IntList decrease_axis;
};

inline SliceAttrs ReadSliceAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "axes"), ReadIntListAttr(reader, "starts"),
          ReadIntListAttr(reader, "ends"), ReadIntListAttr(reader, "decrease_axis")};
}

// The slice with everything resolved, before dimensions are dropped.
struct Window {
  Shape start;  // first index per dimension of Input
  Shape size;
};

inline absl::Status ClipBounds(int64_t length, int64_t& start, int64_t& end) {
  const auto clip = [length](int64_t bound) {
    return std::clamp<int64_t>(bound < 0 ? bound + length : bound, 0, length);
  };
  start = clip(start);
  end = clip(end);
  if (end >= start) return absl::OkStatus();
  return InvalidArgument("slice ends at ", end, ", before its start ", start);
}

// What is taken of something of that shape. `of_array`: it is the elements of an array.
inline absl::StatusOr<Window> FindWindow(const OpContext& ctx, const Shape& shape, bool of_array) {
  const SliceAttrs& attrs = ctx.attrs<SliceAttrs>();
  const SliceList lists[] = {{kStarts, attrs.starts}, {kEnds, attrs.ends}};
  INTERP_ASSIGN_OR_RETURN(
      const SliceBounds bounds,
      ReadSliceBounds(ctx, attrs.axes, attrs.decrease_axis, shape.rank(), lists));
  Window window = {.start = {}, .size = shape};
  window.start.resize(shape.rank(), 0);
  for (const SliceBound& bound : bounds) {
    int64_t start = bound.start;
    int64_t end = bound.end;
    // x[-1] arrives as the bounds -1 and 0 of a dropped dimension.
    if ((of_array || bound.dropped) && start == -1 && end == 0) end = shape[bound.axis];
    INTERP_RETURN_IF_ERROR(ClipBounds(shape[bound.axis], start, end));
    window.start[bound.axis] = start;
    window.size[bound.axis] = end - start;
  }
  return window;
}

// What is taken of the tensor Input.
inline absl::StatusOr<Window> FindWindow(const OpContext& ctx) {
  return FindWindow(ctx, ctx.input(kInput).shape, /*of_array=*/false);
}

// What is taken of the array Input: elements [begin, end).
struct ArrayPart {
  int64_t begin = 0;
  int64_t end = 0;
};
inline absl::StatusOr<ArrayPart> FindArrayPart(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Window window,
      FindWindow(ctx, Shape{std::ssize(ctx.input_array(kInput))}, /*of_array=*/true));
  return ArrayPart{window.start[0], window.start[0] + window.size[0]};
}

// The same where one element is wanted.
inline absl::StatusOr<int64_t> FindArrayElement(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ArrayPart part, FindArrayPart(ctx));
  if (part.begin < part.end) return part.begin;
  return InvalidArgument("the slice has no element of the array 'Input', which has ",
                         std::ssize(ctx.input_array(kInput)));
}

// The inputs of a slice: Input, which has flags of its own, and tensors for the bounds.
inline std::vector<SlotDef> Inputs(int input_flags) {
  constexpr int kBound = kOptional | kAnyDType | kValueInInfer;
  return {{"Input", input_flags},
          {"StartsTensor", kBound},
          {"EndsTensor", kBound},
          {"StartsTensorList", kBound | kVariadic},
          {"EndsTensorList", kBound | kVariadic}};
}

// Of the gradient, behind them.
constexpr int kOutGrad = 5;

}  // namespace interp::slice
