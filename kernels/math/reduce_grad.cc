// Gradients of reduce_sum, _mean, _max, _min, _amax, _amin, _prod and of mean. Of several largest
// or smallest elements, reduce_max and _min give the gradient to each, reduce_amax and _amin an
// equal part of it.
#include <algorithm>
#include <complex>

#include "kernels/math/reduction_grad.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp {
namespace {

using reduction_grad::kOut;
using reduction_grad::kOutGrad;
using reduction_grad::kX;
using reduction_grad::kXGrad;

// X@GRAD = Out@GRAD / divisor.
template <typename T>
absl::Status Spread(KernelContext& ctx, T divisor) {
  INTERP_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanReductionGrad(ctx));
  T* x_grad = ctx.output(kXGrad).mutable_data<T>();
  ForEachPiece(plan, ctx.num_threads(), ctx.input(kOutGrad).data<T>(),
               [=](int64_t begin, int64_t n, const T* values) {
                 for (int64_t i = 0; i < n; ++i) x_grad[begin + i] = values[i] / divisor;
               });
  return absl::OkStatus();
}

template <typename T>
absl::Status SumGrad(KernelContext& ctx) {
  return Spread<T>(ctx, T{1});
}

template <typename T>
absl::Status MeanGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  return Spread<T>(ctx, static_cast<T>(ReducedCount(ctx.input(kX).shape, reduced)));
}

struct ExtremeGrad {
  template <typename T>
  T operator()(T x, T out, T grad) const {
    return x == out ? grad : T{0};
  }
};

// Counts the elements that are the extreme.
template <typename T>
struct CountOf {
  using Acc = int64_t;
  const T* out;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t at) const { return x == out[at] ? 1 : 0; }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename T>
absl::Status SharedExtremeGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  const Tensor& x = ctx.input(kX);
  const T* out = ctx.input(kOut).data<T>();
  const T* grad = ctx.input(kOutGrad).data<T>();
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(ctx.input(kOutGrad).size_bytes()));
  T* const parts = work.data<T>();
  RunReduce(PlanReduce(x, reduced, ctx.input(kOutGrad)), ctx.num_threads(), x.data<T>(), parts,
            CountOf<T>{out}, [grad](int64_t count, int64_t at) {
              return grad[at] / static_cast<T>(std::max<int64_t>(count, 1));
            });
  return MapReductionGrad<T>(
      ctx,
      [=](int64_t o) {
        return PerOutput<T>{out[o], parts[o]};
      },
      ExtremeGrad());
}

// The product of the elements that are not 0, and the number of zeros.
struct Factors {
  double product = 1;
  int64_t zeros = 0;
};

template <typename T>
struct FactorsOf {
  using Acc = Factors;
  Acc Init() const { return {}; }
  Acc Map(T x, int64_t) const { return x == 0 ? Factors{1, 1} : Factors{x, 0}; }
  Acc Fold(const Acc& a, const Acc& b) const { return {a.product * b.product, a.zeros + b.zeros}; }
};

// The product of the other elements: that of all divided by the element, and for a single 0 that of
// the rest.
template <typename T>
absl::Status ProductGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  const Tensor& x = ctx.input(kX);
  const T* grad = ctx.input(kOutGrad).data<T>();
  const auto outputs = static_cast<size_t>(ctx.input(kOutGrad).numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(outputs * sizeof(PerOutput<T>)));
  auto* const products = work.data<PerOutput<T>>();
  RunReduce(PlanReduce(x, reduced, ctx.input(kOutGrad)), ctx.num_threads(), x.data<T>(), products,
            FactorsOf<T>(), [grad](const Factors& factors, int64_t at) {
              const T product = static_cast<T>(grad[at] * factors.product);
              return PerOutput<T>{factors.zeros == 0 ? product : T{0},
                                  factors.zeros == 1 ? product : T{0}};
            });
  return MapReductionGrad<T>(
      ctx, [=](int64_t o) { return products[o]; },
      [](T value, T whole, T rest) { return value == 0 ? rest : whole / value; });
}

OpDef SpreadDef(absl::string_view type, std::vector<KernelDef> kernels) {
  return ReductionGradDef(type, kNoNeedBuffer, kOptional | kNoNeedBuffer, std::move(kernels));
}

OpDef MeanOfAllGradDef() {
  OpDef def = SpreadDef("mean_grad", {{DType::kFloat32, MeanGrad<float>},
                                      {DType::kFloat64, MeanGrad<double>},
                                      {DType::kComplex64, MeanGrad<std::complex<float>>},
                                      {DType::kComplex128, MeanGrad<std::complex<double>>}});
  def.parse = ParseAttrs<ReductionAttrs, ReadWholeReduction>;
  return def;
}

OpDef ExtremeGradDef(absl::string_view type) {
  return ReductionGradDef(type, 0, 0, GradientRows([]<typename T>() -> KernelFn {
                            return ReductionGrad<ExtremeGrad, T>;
                          }));
}

std::vector<KernelDef> SumGradKernels() {
  std::vector<KernelDef> rows = GradientRows([]<typename T>() -> KernelFn { return SumGrad<T>; });
  rows.push_back({DType::kComplex64, SumGrad<std::complex<float>>});
  rows.push_back({DType::kComplex128, SumGrad<std::complex<double>>});
  return rows;
}

// The gradient of what spreads a number is what adds numbers up.
constexpr SecondGradient kSumSecond =
    SecondIsForward("reduce_sum", {"AxisTensor", "AxisTensorList"});
constexpr SecondGradient kMeanSecond =
    SecondIsForward("reduce_mean", {"AxisTensor", "AxisTensorList"});

INTERP_REGISTER_OP(WithSecond<kSumSecond>(SpreadDef("reduce_sum_grad", SumGradKernels())));
INTERP_REGISTER_OP(WithSecond<kMeanSecond>(
    SpreadDef("reduce_mean_grad", {{DType::kFloat32, MeanGrad<float>},
                                   {DType::kFloat64, MeanGrad<double>},
                                   {DType::kComplex64, MeanGrad<std::complex<float>>},
                                   {DType::kComplex128, MeanGrad<std::complex<double>>}})));
INTERP_REGISTER_OP(MeanOfAllGradDef());
INTERP_REGISTER_OP(ExtremeGradDef("reduce_max_grad"));
INTERP_REGISTER_OP(ExtremeGradDef("reduce_min_grad"));
INTERP_REGISTER_OP(ReductionGradDef("reduce_amax_grad", 0, 0,
                                    {{DType::kFloat32, SharedExtremeGrad<float>},
                                     {DType::kFloat64, SharedExtremeGrad<double>}}));
INTERP_REGISTER_OP(ReductionGradDef("reduce_amin_grad", 0, 0,
                                    {{DType::kFloat32, SharedExtremeGrad<float>},
                                     {DType::kFloat64, SharedExtremeGrad<double>}}));
INTERP_REGISTER_OP(ReductionGradDef("reduce_prod_grad", 0, kOptional | kNoNeedBuffer,
                                    {{DType::kFloat32, ProductGrad<float>},
                                     {DType::kFloat64, ProductGrad<double>}}));

}  // namespace
}  // namespace interp
