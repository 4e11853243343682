// What rows of arg_max and arg_min have in common: attributes and the lines to search.
#pragma once

#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {

// Inputs X, AxisTensor; output Out.
inline constexpr int kArgX = 0;
inline constexpr int kArgAxisTensor = 1;
inline constexpr int kArgOut = 0;

struct ArgAttrs {
  int64_t axis;
  bool keep_dims, flatten;
  DType dtype;

  static ArgAttrs Read(AttrReader& attrs) {
    const ArgAttrs parsed = {attrs.Long("axis", -1), attrs.Bool("keepdims", false),
                             attrs.Bool("flatten", false), attrs.Type("dtype", DType::kInt64)};
    if (parsed.dtype != DType::kInt32 && parsed.dtype != DType::kInt64) {
      attrs.Fail(
          absl::StrCat("attribute 'dtype' is ", Name(parsed.dtype), ", expected int32 or int64"));
    }
    return parsed;
  }
};

// The axis from the front; 0 where the tensor is one line.
inline absl::StatusOr<int> ArgAxis(const OpContext& ctx) {
  const ArgAttrs& attrs = ctx.attrs<ArgAttrs>();
  if (attrs.flatten) return 0;
  INTERP_ASSIGN_OR_RETURN(const int64_t axis,
                          ReadInteger(ctx, kArgAxisTensor, "AxisTensor", attrs.axis));
  return ResolveAxis(axis, std::max(ctx.input(kArgX).shape.rank(), 1));
}

// The lines that are searched along `axis`, that of ArgAxis.
inline Lines ArgLines(const ArgAttrs& attrs, const Shape& x, int axis) {
  return attrs.flatten ? Lines{1, x.numel(), 1} : LinesAlong(x, axis);
}

}  // namespace interp
