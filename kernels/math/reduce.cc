// reduce_sum, _mean, _max, _min, _amax, _amin, _prod, _all, _any and mean.
#include <limits>
#include <type_traits>

#include "kernels/complex/complex_dtype.h"
#include "kernels/math/reduction.h"
#include "kernels/util/sum_of.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <typename T>
struct ProductOf {
  using Acc = SumType<T>;
  Acc Init() const { return 1; }
  Acc Map(T x, int64_t) const { return static_cast<Acc>(static_cast<ComputeType<T>>(x)); }
  Acc Fold(Acc a, Acc b) const { return WrapMul(a, b); }
};

// The extremes keep a NaN once they have seen one.
template <typename T>
struct MaxOf {
  using Acc = ComputeType<T>;
  Acc Init() const {
    if constexpr (std::is_integral_v<Acc>) return std::numeric_limits<Acc>::min();
    return -std::numeric_limits<Acc>::infinity();
  }
  Acc Map(T x, int64_t) const { return static_cast<Acc>(x); }
  Acc Fold(Acc a, Acc b) const { return b > a || b != b ? b : a; }
};

template <typename T>
struct MinOf {
  using Acc = ComputeType<T>;
  Acc Init() const {
    if constexpr (std::is_integral_v<Acc>) return std::numeric_limits<Acc>::max();
    return std::numeric_limits<Acc>::infinity();
  }
  Acc Map(T x, int64_t) const { return static_cast<Acc>(x); }
  Acc Fold(Acc a, Acc b) const { return b < a || b != b ? b : a; }
};

template <typename T>
struct AllOf {
  using Acc = uint8_t;
  Acc Init() const { return 1; }
  Acc Map(T x, int64_t) const { return x != T{0}; }
  Acc Fold(Acc a, Acc b) const { return a & b; }
};

template <typename T>
struct AnyOf {
  using Acc = uint8_t;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t) const { return x != T{0}; }
  Acc Fold(Acc a, Acc b) const { return a | b; }
};

// Kernel of one reducer on X of T with a result of R.
template <typename Reducer, typename T, typename R = T>
absl::Status Reduce(KernelContext& ctx) {
  return RunReduction<T, R>(ctx, Reducer(), [](typename Reducer::Acc total, int64_t) {
    return static_cast<R>(static_cast<ComputeType<R>>(total));
  });
}

template <template <typename> typename Reducer, typename... Ts>
std::vector<KernelDef> ReduceKernels() {
  return {{DTypeOf<Ts>, Reduce<Reducer<Ts>, Ts>}...};
}

template <template <typename> typename Reducer, typename... Ts>
std::vector<KernelDef> LogicalKernels() {
  return {{DTypeOf<Ts>, Reduce<Reducer<Ts>, Ts, bool>}...};
}

template <typename T>
absl::Status Mean(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  const int64_t count = ReducedCount(ctx.input(kX).shape, reduced);
  if (std::is_integral_v<T> && count == 0) {
    return InvalidArgument("the mean of no integers does not exist");
  }
  using Acc = SumType<T>;
  return RunReduction<T, T>(ctx, SumOf<T>(), [count](Acc total, int64_t) {
    return static_cast<T>(static_cast<ComputeType<T>>(total / static_cast<Acc>(count)));
  });
}

// reduce_sum casts X to out_dtype first, and without one bool and int32 to int64. The other ops
// have the attribute too, but ignore it.
DType SumDType(const DTypeContext& ctx) {
  const DType given = ctx.attrs<ReductionAttrs>().out_dtype;
  const DType dtype = given != DType::kUndefined ? given : ctx.input(kX);
  const bool widens =
      dtype == DType::kBool || (dtype == DType::kInt32 && given == DType::kUndefined);
  return widens ? DType::kInt64 : dtype;
}

OpDef ReduceSumDef() {
  OpDef def = ReductionDef(
      "reduce_sum", ReduceKernels<SumOf, float, double, float16, int32_t, int64_t, int16_t, int8_t,
                                  uint8_t, std::complex<float>, std::complex<double>>());
  def.kernel_dtype = SumDType;
  def.gradient = ReductionGradient(/*of_out=*/false);
  return def;
}

// The extremes of no elements do not exist.
absl::Status InferExtreme(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  const Shape& x = ctx.input(kX).shape;
  SetReducedShape(ctx, reduced, ctx.attrs<ReductionAttrs>().keep_dim);
  if (ReducedCount(x, reduced) == 0 && ctx.output(kOut).numel() > 0) {
    return InvalidArgument("input 'X' ", ToString(x), " has no element to reduce");
  }
  return absl::OkStatus();
}

template <template <typename> typename Reducer>
OpDef ExtremeDef(absl::string_view type, GradientDef gradient) {
  OpDef def =
      ReductionDef(type, ReduceKernels<Reducer, float, double, float16, int32_t, int64_t>());
  def.infer = InferExtreme;
  def.gradient = std::move(gradient);
  return def;
}

template <template <typename> typename Reducer>
OpDef LogicalDef(absl::string_view type) {
  OpDef def = ReductionDef(type, LogicalKernels<Reducer, bool, float, double, int32_t, int64_t>());
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, DType::kBool); };
  def.gradient = {.none = true};
  return def;
}

OpDef ReduceMeanDef() {
  OpDef def = ReductionDef("reduce_mean", {{DType::kFloat32, Mean<float>},
                                           {DType::kFloat64, Mean<double>},
                                           {DType::kFloat16, Mean<float16>},
                                           {DType::kInt32, Mean<int32_t>},
                                           {DType::kInt64, Mean<int64_t>},
                                           {DType::kComplex64, Mean<std::complex<float>>},
                                           {DType::kComplex128, Mean<std::complex<double>>}});
  def.gradient = ReductionGradient(/*of_out=*/false);
  return def;
}

OpDef ReduceProdDef() {
  OpDef def = ReductionDef("reduce_prod",
                           ReduceKernels<ProductOf, float, double, float16, int32_t, int64_t>());
  def.gradient = ReductionGradient(/*of_out=*/true);
  return def;
}

// mean is reduce_mean of all elements; it has no attributes.
OpDef MeanOfAllDef() {
  OpDef def = ReductionDef("mean", {{DType::kFloat32, Mean<float>},
                                    {DType::kFloat64, Mean<double>},
                                    {DType::kFloat16, Mean<float16>},
                                    {DType::kComplex64, Mean<std::complex<float>>},
                                    {DType::kComplex128, Mean<std::complex<double>>}});
  def.parse = ParseAttrs<ReductionAttrs, ReadWholeReduction>;
  def.gradient = ReductionGradient(/*of_out=*/false);
  return def;
}

INTERP_REGISTER_OP(ReduceSumDef());
INTERP_REGISTER_OP(ReduceMeanDef());
INTERP_REGISTER_OP(ReduceProdDef());
INTERP_REGISTER_OP(ExtremeDef<MaxOf>("reduce_max", ReductionGradient(/*of_out=*/true)));
INTERP_REGISTER_OP(ExtremeDef<MinOf>("reduce_min", ReductionGradient(/*of_out=*/true)));
INTERP_REGISTER_OP(ExtremeDef<MaxOf>("reduce_amax", ReductionGradient(/*of_out=*/true)));
INTERP_REGISTER_OP(ExtremeDef<MinOf>("reduce_amin", ReductionGradient(/*of_out=*/true)));
INTERP_REGISTER_OP(LogicalDef<AllOf>("reduce_all"));
INTERP_REGISTER_OP(LogicalDef<AnyOf>("reduce_any"));
INTERP_REGISTER_OP(MeanOfAllDef());

}  // namespace
}  // namespace interp
