// cumsum: Out[i] = X[0] + ... + X[i] along `axis`; `exclusive` leaves X[i] out, `reverse` starts at
// the end, `flatten` takes the tensor as one line.
#include <optional>
#include <type_traits>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/lines.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int64_t kTile = 128;  // neighbouring lines summed together

struct CumSumAttrs {
  int64_t axis;
  bool flatten, exclusive, reverse;
};

CumSumAttrs ReadCumSumAttrs(AttrReader& attrs) {
  return {attrs.Long("axis", -1), attrs.Bool("flatten", false), attrs.Bool("exclusive", false),
          attrs.Bool("reverse", false)};
}

// REQUIRES: InferCumSum has accepted the shape.
Lines LinesOf(const CumSumAttrs& attrs, const Shape& x) {
  if (attrs.flatten) return {1, x.numel(), 1};
  return LinesAlong(x, *NormalizeAxis(attrs.axis, std::max(x.rank(), 1)));
}

absl::Status InferCumSum(InferContext& ctx) {
  const CumSumAttrs& attrs = ctx.attrs<CumSumAttrs>();
  const Shape& x = ctx.input(kX).shape;
  if (!attrs.flatten && !NormalizeAxis(attrs.axis, std::max(x.rank(), 1)).has_value()) {
    return InvalidArgument("axis is ", attrs.axis, " for 'X' ", ToString(x));
  }
  ctx.ShareShape(kX, kOut);
  if (attrs.flatten) ctx.SetShape(kOut, {x.numel()});
  return absl::OkStatus();
}

// Sums n neighbouring lines whose elements are `stride` apart, towards higher or, with a negative
// stride, lower addresses. Reads an element before it writes there: out may be x.
template <typename T>
void SumTile(const T* x, T* out, int64_t length, int64_t stride, int64_t n, bool exclusive) {
  using Acc = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  Acc sums[kTile] = {};
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

template <typename T>
absl::Status CumSum(KernelContext& ctx) {
  const CumSumAttrs& attrs = ctx.attrs<CumSumAttrs>();
  const T* x = ctx.input(kX).data<T>();
  T* out = ctx.output(kOut).mutable_data<T>();
  const Lines lines = LinesOf(attrs, ctx.input(kX).shape);
  const bool exclusive = attrs.exclusive && ctx.input(kX).shape.rank() > 0;  // as Paddle
  const int64_t stride = attrs.reverse ? -lines.inner : lines.inner;
  const int64_t first = attrs.reverse ? std::max<int64_t>(lines.length - 1, 0) * lines.inner : 0;
  const int64_t tiles = (lines.inner + kTile - 1) / kTile;
  const int64_t grain = LineGrain(lines.length * std::min(lines.inner, kTile));
  ParallelFor(ctx.num_threads(), lines.outer * tiles, grain, [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % tiles * kTile;
      const int64_t at = lines.Start(task / tiles * lines.inner + column) + first;
      SumTile(x + at, out + at, lines.length, stride, std::min(kTile, lines.inner - column),
              exclusive);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cumsum",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CumSumAttrs, ReadCumSumAttrs>,
    .infer = InferCumSum,
    .kernels = {{DType::kFloat32, CumSum<float>},
                {DType::kFloat64, CumSum<double>},
                {DType::kInt32, CumSum<int32_t>},
                {DType::kInt64, CumSum<int64_t>},
                {DType::kInt16, CumSum<int16_t>}},
    .inplace = {{kX, kOut}},
});

}  // namespace
}  // namespace interp
