// Gradients of p_norm, frobenius_norm, l1_norm, squared_l2_norm and logsumexp. Where a norm is 0
// and has no derivative, the gradient is 0.
#include "kernels/math/norm_attrs.h"
#include "kernels/math/p_norm.h"
#include "kernels/math/reduction_grad.h"
#include "kernels/util/vector_math.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

struct SquaresGrad {
  template <typename T>
  T operator()(T x, T, T grad) const {
    return grad * T{2} * x;
  }
};

struct LogSumExpGrad {
  template <typename T>
  T operator()(T x, T out, T grad) const {
    return grad * Exp(x - out);
  }
};

template <typename T>
absl::Status PNormGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<PNormAttrs>();
  return WithNormGrad<T>(attrs.order, attrs.epsilon,
                         [&ctx](const auto& grad) { return RunReductionGrad<T>(ctx, grad); });
}

OpDef PNormGradDef() {
  OpDef def =
      ReductionGradDef("p_norm_grad", 0, 0,
                       {{DType::kFloat32, PNormGrad<float>}, {DType::kFloat64, PNormGrad<double>}});
  def.parse = ParseAttrs<PNormAttrs, PNormAttrs::Read>;
  return def;
}

OpDef LogSumExpGradDef() {
  OpDef def = ReductionGradDef("logsumexp_grad", 0, 0, ReductionGradKernels<LogSumExpGrad>());
  def.parse = ParseAttrs<ReductionAttrs, ReadLogSumExpAttrs>;
  def.infer = WithoutLod<InferReductionGrad, 0>;
  return def;
}

// Of a norm of all elements; its value is not needed.
template <typename Op>
OpDef WholeNormGradDef(absl::string_view type) {
  OpDef def = ReductionGradDef(type, 0, kOptional, ReductionGradKernels<Op>());
  def.parse = ParseAttrs<ReductionAttrs, ReadWholeReduction>;
  return def;
}

OpDef L1NormGradDef() {
  OpDef def = WholeNormGradDef<MagnitudesGrad>("l1_norm_grad");
  def.infer = WithoutLod<InferReductionGrad, 0>;
  return def;
}

INTERP_REGISTER_OP(PNormGradDef());
INTERP_REGISTER_OP(LogSumExpGradDef());
INTERP_REGISTER_OP(ReductionGradDef("frobenius_norm_grad", 0, 0,
                                    ReductionGradKernels<EuclideanGrad>()));
INTERP_REGISTER_OP(L1NormGradDef());
INTERP_REGISTER_OP(WholeNormGradDef<SquaresGrad>("squared_l2_norm_grad"));

}  // namespace
}  // namespace interp
