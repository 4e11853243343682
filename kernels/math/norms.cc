// Norms over some dimensions: p_norm, frobenius_norm, l1_norm, squared_l2_norm, logsumexp.
#include <cmath>
#include <limits>

#include "kernels/math/norm_attrs.h"
#include "kernels/math/p_norm.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kOut = 0;

template <typename T>
struct MaxValue {
  using Acc = T;
  Acc Init() const { return -std::numeric_limits<T>::infinity(); }
  Acc Map(T x, int64_t) const { return x; }
  Acc Fold(Acc a, Acc b) const { return b > a || b != b ? b : a; }
};

// Sums e^(x - shift); the shifts lie where the results go.
template <typename T>
struct SumOfShiftedExps {
  using Acc = double;
  const T* shift;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t at) const { return Exp(x - shift[at]); }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename T>
absl::Status PNorm(KernelContext& ctx) {
  return WithNorm<T>(ctx.attrs<PNormAttrs>().order, [&ctx](const auto& sum, const auto& finish) {
    return RunReduction<T, T>(ctx, sum, finish);
  });
}

template <typename T>
absl::Status FrobeniusNorm(KernelContext& ctx) {
  return RunReduction<T, T>(ctx, SumOfSquares<T>(), SquareRoot());
}

template <typename T>
absl::Status SquaredL2Norm(KernelContext& ctx) {
  return RunReduction<T, T>(ctx, SumOfSquares<T>(), AsIs());
}

template <typename T>
absl::Status L1Norm(KernelContext& ctx) {
  return RunReduction<T, T>(ctx, SumOfMagnitudes<T>(), AsIs());
}

// log(sum e^x) = m + log(sum e^(x - m)) with the largest finite m, so that nothing overflows.
template <typename T>
absl::Status LogSumExp(KernelContext& ctx) {
  T* out = ctx.output(kOut).mutable_data<T>();
  INTERP_RETURN_IF_ERROR((RunReduction<T, T>(ctx, MaxValue<T>(), [](T max, int64_t) {
    return std::abs(max) <= std::numeric_limits<T>::max() ? max : T{0};
  })));
  return RunReduction<T, T>(ctx, SumOfShiftedExps<T>{out}, [out](double total, int64_t at) {
    return static_cast<T>(std::log(total)) + out[at];
  });
}

absl::Status InferOneElement(InferContext& ctx) {
  ctx.SetShape(kOut, {1});
  return absl::OkStatus();
}

// A norm of all elements, as a scalar.
OpDef WholeNormDef(absl::string_view type, std::vector<KernelDef> kernels) {
  OpDef def = ReductionDef(type, std::move(kernels));
  def.parse = ParseAttrs<ReductionAttrs, ReadWholeReduction>;
  def.gradient = ReductionGradient(/*of_out=*/false);
  return def;
}

// Its result is no scalar but has shape [1].
OpDef SquaredL2NormDef() {
  OpDef def = WholeNormDef("squared_l2_norm", {{DType::kFloat32, SquaredL2Norm<float>},
                                               {DType::kFloat64, SquaredL2Norm<double>}});
  def.infer = InferOneElement;
  return def;
}

OpDef PNormDef() {
  OpDef def =
      ReductionDef("p_norm", {{DType::kFloat32, PNorm<float>}, {DType::kFloat64, PNorm<double>}});
  def.parse = ParseAttrs<PNormAttrs, PNormAttrs::Read>;
  def.gradient = ReductionGradient(/*of_out=*/true);
  return def;
}

OpDef LogSumExpDef() {
  OpDef def = ReductionDef(
      "logsumexp", {{DType::kFloat32, LogSumExp<float>}, {DType::kFloat64, LogSumExp<double>}});
  def.parse = ParseAttrs<ReductionAttrs, ReadLogSumExpAttrs>;
  def.gradient = ReductionGradient(/*of_out=*/true);
  return def;
}

OpDef FrobeniusNormDef() {
  OpDef def = ReductionDef("frobenius_norm", {{DType::kFloat32, FrobeniusNorm<float>},
                                              {DType::kFloat64, FrobeniusNorm<double>}});
  def.gradient = ReductionGradient(/*of_out=*/true);
  return def;
}

INTERP_REGISTER_OP(PNormDef());
INTERP_REGISTER_OP(LogSumExpDef());
INTERP_REGISTER_OP(FrobeniusNormDef());
INTERP_REGISTER_OP(SquaredL2NormDef());
INTERP_REGISTER_OP(WholeNormDef("l1_norm", {{DType::kFloat32, L1Norm<float>},
                                            {DType::kFloat64, L1Norm<double>}}));

}  // namespace
}  // namespace interp
