// What cumsum and its gradient have in common: running sums along lines.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {

struct CumSumAttrs {
  int64_t axis;
  bool flatten, exclusive, reverse;

  static CumSumAttrs Read(AttrReader& attrs) {
    return {attrs.Long("axis", -1), attrs.Bool("flatten", false), attrs.Bool("exclusive", false),
            attrs.Bool("reverse", false)};
  }
};

inline absl::Status CheckCumSumAxis(const CumSumAttrs& attrs, const Shape& x) {
  return attrs.flatten ? absl::OkStatus() : CheckAxis(attrs.axis, x, "X");
}

// The attributes of an op whose axis may be the value of the tensor in slot `axis_tensor`.
inline absl::StatusOr<CumSumAttrs> CumSumAttrsOf(const OpContext& ctx, int axis_tensor) {
  CumSumAttrs attrs = ctx.attrs<CumSumAttrs>();
  INTERP_ASSIGN_OR_RETURN(attrs.axis, ReadInteger(ctx, axis_tensor, "AxisTensor", attrs.axis));
  return attrs;
}

// The shape of input 0, X, for output 0, its running sums.
inline absl::Status InferCumSum(InferContext& ctx, const CumSumAttrs& attrs) {
  const Shape& x = ctx.input(0).shape;
  INTERP_RETURN_IF_ERROR(CheckCumSumAxis(attrs, x));
  ctx.ShareShape(0, 0);
  if (attrs.flatten) ctx.SetShape(0, {x.numel()});
  return absl::OkStatus();
}

// The lines to sum. REQUIRES: CheckCumSumAxis has accepted the shape.
inline Lines CumSumLines(const CumSumAttrs& attrs, const Shape& x) {
  if (attrs.flatten) return {1, x.numel(), 1};
  return LinesAlong(x, attrs.axis);
}

inline constexpr int64_t kCumSumTile = 128;  // neighbouring lines summed together

// Sums n neighbouring lines whose elements are `stride` apart, towards higher or, with a negative
// stride, lower addresses. Reads an element before it writes there: out may be x.
template <typename T>
void SumTile(const T* x, T* out, int64_t length, int64_t stride, int64_t n, bool exclusive) {
  using Acc = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  Acc sums[kCumSumTile] = {};
  for (int64_t i = 0; i < length; ++i, x += stride, out += stride) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const Acc before = sums[j];
      const Acc after = WrapAdd(before, static_cast<Acc>(x[j]));
      sums[j] = after;
      out[j] = static_cast<T>(exclusive ? before : after);
    }
  }
}

// Whether elements are left out of their own sums. Paddle copies a tensor of one element.
inline bool IsExclusive(const CumSumAttrs& attrs, const Shape& shape) {
  return attrs.exclusive && shape.numel() != 1;
}

// The running sums of a tensor of that shape.
template <typename T>
void RunCumSum(int num_threads, const CumSumAttrs& attrs, const Shape& shape, const T* x, T* out) {
  const Lines lines = CumSumLines(attrs, shape);
  const bool exclusive = IsExclusive(attrs, shape);
  const int64_t stride = attrs.reverse ? -lines.inner : lines.inner;
  const int64_t first = attrs.reverse ? std::max<int64_t>(lines.length - 1, 0) * lines.inner : 0;
  const int64_t tiles = (lines.inner + kCumSumTile - 1) / kCumSumTile;
  const int64_t grain = GrainFor(lines.length * std::min(lines.inner, kCumSumTile));
  ParallelFor(num_threads, lines.outer * tiles, grain, [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % tiles * kCumSumTile;
      const int64_t at = lines.Start(task / tiles * lines.inner + column) + first;
      SumTile(x + at, out + at, lines.length, stride, std::min(kCumSumTile, lines.inner - column),
              exclusive);
    }
  });
}

}  // namespace interp
