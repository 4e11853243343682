// check_finite_and_unscale: Out[i] = X[i] / Scale, and whether some X has an infinity or a NaN.
// From the first X that has one, Out[i] = 0 X[i], NaN for those elements.
#include <atomic>
#include <cmath>
#include <limits>

#include "core/op_def.h"
#include "kernels/optimizer/chunk.h"
#include "kernels/optimizer/scaled_gradients.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/parallel_for.h"

namespace interp::optimizer {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kOut = 0;
constexpr int kFoundInfinite = 1;

absl::Status Infer(InferContext& ctx) {
  const Tensor& scale = ctx.input(kScale);
  if (scale.numel() != 1 || !IsFloating(scale.dtype)) {
    return InvalidArgument("'Scale' is ", DescribeType(scale), ", expected one float");
  }
  INTERP_RETURN_IF_ERROR(InferScaledGradients(ctx, kX, kOut));
  ctx.SetShape(kFoundInfinite, {1});
  return absl::OkStatus();
}

// Whether all of x are finite, of which x times `factor` goes to `out`. The pragma allows one array
// for both.
template <typename T>
bool Unscale(const T* x, int64_t n, ComputeType<T> factor, T* out) {
  using C = ComputeType<T>;
  int finite = 1;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C value = static_cast<C>(x[i]);
    finite &= std::abs(value) <= std::numeric_limits<C>::max() ? 1 : 0;
    out[i] = static_cast<T>(value * factor);
  }
  return finite != 0;
}

// out = 0 x; one array may be both.
template <typename T>
void TimesZero(KernelContext& ctx, const T* x, int64_t n, T* out) {
  using C = ComputeType<T>;
  ParallelFor(ctx.num_threads(), n, kElementwiseGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(static_cast<C>(x[i]) * C{0});
  });
}

template <typename T>
absl::Status CheckFiniteAndUnscale(KernelContext& ctx) {
  using C = ComputeType<T>;
  const C factor = C{1} / ScalarOf<C>(ctx.input(kScale));
  std::atomic<bool> finite = true;
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    const T* x = ctx.inputs(kX)[i]->data<T>();
    T* out = ctx.outputs(kOut)[i]->mutable_data<T>();
    const int64_t n = ctx.inputs(kX)[i]->numel();
    if (!finite) {
      TimesZero(ctx, x, n, out);
      continue;
    }
    ParallelFor(ctx.num_threads(), n, kElementwiseGrain, [&, x, out](int64_t begin, int64_t end) {
      if (!Unscale(x + begin, end - begin, factor, out + begin)) finite = false;
    });
    if (!finite) TimesZero(ctx, out, n, out);
  }
  *ctx.output(kFoundInfinite).mutable_data<bool>() = !finite;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "check_finite_and_unscale",
    .inputs = {{"X", kVariadic}, {"Scale", kAnyDType}, {"FloatStatus", kOptional | kAnyDType}},
    .outputs = {{"Out", kVariadic}, {"FoundInfinite"}},
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kFoundInfinite, DType::kBool); },
    .infer = Infer,
    .kernels = {{DType::kFloat32, CheckFiniteAndUnscale<float>},
                {DType::kFloat64, CheckFiniteAndUnscale<double>},
                {DType::kFloat16, CheckFiniteAndUnscale<float16>},
                {DType::kBFloat16, CheckFiniteAndUnscale<bfloat16>}},
    .inplace = {{kX, kOut, /*each=*/true}},
});

}  // namespace
}  // namespace interp::optimizer
