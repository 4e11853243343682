// logcumsumexp: Out[i] = log(exp(X[0]) + ... + exp(X[i])), with the attributes of cumsum.
// logcumsumexp_grad: X@GRAD[i] = the sum of Out@GRAD[k] * exp(X[i] - Out[k]) over all k that X[i]
// counts for.
#include <cmath>
#include <limits>

#include "kernels/math/cumsum.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

// Where a line starts and how far its elements are apart, in the order in which they are summed.
struct Walk {
  int64_t first;
  int64_t step;
};

Walk WalkOf(const CumSumAttrs& attrs, const Lines& lines, int64_t line) {
  const int64_t start = lines.Start(line);
  if (!attrs.reverse) return {start, lines.inner};
  return {start + (lines.length - 1) * lines.inner, -lines.inner};
}

// log(exp(a) + exp(b)); the lowest number stands for an empty sum.
template <typename T>
T LogAddExp(T a, T b) {
  const T high = std::max(a, b);
  const T low = std::min(a, b);
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}

template <typename T>
absl::Status LogCumSumExp(KernelContext& ctx) {
  const CumSumAttrs& attrs = ctx.attrs<CumSumAttrs>();
  const Lines lines = CumSumLines(attrs, ctx.input(kX).shape);
  const bool exclusive = IsExclusive(attrs, ctx.input(kX).shape);
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ForEachLine(lines, LineTasks(lines, ctx.num_threads()), [=, &attrs](int64_t, int64_t line) {
    const Walk walk = WalkOf(attrs, lines, line);
    T sum = std::numeric_limits<T>::lowest();
    int64_t at = walk.first;
    for (int64_t i = 0; i < lines.length; ++i, at += walk.step) {
      const T before = sum;
      sum = LogAddExp(sum, x[at]);
      out[at] = exclusive ? before : sum;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "logcumsumexp",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CumSumAttrs, CumSumAttrs::Read>,
    .infer = [](InferContext& ctx) { return InferCumSum(ctx, ctx.attrs<CumSumAttrs>()); },
    .kernels = {{DType::kFloat32, LogCumSumExp<float>}, {DType::kFloat64, LogCumSumExp<double>}},
    .precision = PrecisionRule::kFull,
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kGradOut = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferLogCumSumExpGrad(InferContext& ctx) {
  const CumSumAttrs& attrs = ctx.attrs<CumSumAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckCumSumAxis(attrs, x));
  const Shape out = attrs.flatten ? Shape{x.numel()} : x;
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kGradOut, "Out", out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// From the end of the walk: share = the sum of Out@GRAD[k] * exp(Out[i] - Out[k]) over k >= i,
// whose factors are at most 1, since Out ascends.
template <typename T>
absl::Status LogCumSumExpGrad(KernelContext& ctx) {
  const CumSumAttrs& attrs = ctx.attrs<CumSumAttrs>();
  const Lines lines = CumSumLines(attrs, ctx.input(kX).shape);
  const bool exclusive = IsExclusive(attrs, ctx.input(kX).shape);
  const T* const x = ctx.input(kX).data<T>();
  const T* const out = ctx.input(kGradOut).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ForEachLine(lines, LineTasks(lines, ctx.num_threads()), [=, &attrs](int64_t, int64_t line) {
    const Walk walk = WalkOf(attrs, lines, line);
    int64_t at = walk.first + (lines.length - 1) * walk.step;
    double share = 0;
    double later = 0;  // Out of the last k that has been added
    for (int64_t i = lines.length; i-- > 0; at -= walk.step) {
      const auto add = [&](int64_t k) {
        share = grad[k] + (share == 0 ? 0 : share * std::exp(out[k] - later));
        later = out[k];
      };
      if (!exclusive) add(at);
      x_grad[at] = static_cast<T>(share == 0 ? 0 : share * std::exp(x[at] - later));
      if (exclusive) add(at);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "logcumsumexp_grad",
    .inputs = {{"X"}, {"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<CumSumAttrs, CumSumAttrs::Read>,
    .infer = InferLogCumSumExpGrad,
    .kernels = {{DType::kFloat32, LogCumSumExpGrad<float>},
                {DType::kFloat64, LogCumSumExpGrad<double>}},
});

}  // namespace
}  // namespace interp
