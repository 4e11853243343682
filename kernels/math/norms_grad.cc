// Gradients of p_norm, frobenius_norm, l1_norm, squared_l2_norm and logsumexp. Where a norm is 0
// and has no derivative, the gradient is 0.
#include <cmath>
#include <limits>

#include "kernels/math/norm_attrs.h"
#include "kernels/math/reduction_grad.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

template <typename T>
T SignOf(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

struct MagnitudesGrad {
  template <typename T>
  T operator()(T x, T, T grad) const {
    return grad * SignOf(x);
  }
};

struct SquaresGrad {
  template <typename T>
  T operator()(T x, T, T grad) const {
    return grad * T{2} * x;
  }
};

struct EuclideanGrad {
  template <typename T>
  T operator()(T x, T out, T grad) const {
    return out == 0 ? T{0} : grad * (x / out);
  }
};

struct ExtremeMagnitudeGrad {
  template <typename T>
  T operator()(T x, T out, T grad) const {
    return std::abs(x) == out ? grad * SignOf(x) : T{0};
  }
};

struct NoGrad {
  template <typename T>
  T operator()(T, T, T) const {
    return T{0};
  }
};

struct LogSumExpGrad {
  template <typename T>
  T operator()(T x, T out, T grad) const {
    return grad * Exp(x - out);
  }
};

// sign(x) (|x| / Out)^(order - 1)
template <typename T>
struct PowersGrad {
  T power;  // order - 1
  T operator()(T x, T out, T grad) const {
    return x == 0 || out == 0 ? T{0} : grad * SignOf(x) * std::pow(std::abs(x) / out, power);
  }
};

template <typename T>
absl::Status PNormGrad(KernelContext& ctx) {
  const float order = ctx.attrs<PNormAttrs>().order;
  if (order == 0) return RunReductionGrad<T>(ctx, NoGrad());
  if (order == 1) return RunReductionGrad<T>(ctx, MagnitudesGrad());
  if (order == 2) return RunReductionGrad<T>(ctx, EuclideanGrad());
  if (std::isinf(order)) return RunReductionGrad<T>(ctx, ExtremeMagnitudeGrad());
  return RunReductionGrad<T>(ctx, PowersGrad<T>{static_cast<T>(order) - T{1}});
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
  return def;
}

// Of a norm of all elements; its value is not needed.
template <typename Op>
OpDef WholeNormGradDef(absl::string_view type) {
  OpDef def = ReductionGradDef(type, 0, kOptional, ReductionGradKernels<Op>());
  def.parse = ParseAttrs<ReductionAttrs, ReadWholeReduction>;
  return def;
}

INTERP_REGISTER_OP(PNormGradDef());
INTERP_REGISTER_OP(LogSumExpGradDef());
INTERP_REGISTER_OP(ReductionGradDef("frobenius_norm_grad", 0, 0,
                                    ReductionGradKernels<EuclideanGrad>()));
INTERP_REGISTER_OP(WholeNormGradDef<MagnitudesGrad>("l1_norm_grad"));
INTERP_REGISTER_OP(WholeNormGradDef<SquaresGrad>("squared_l2_norm_grad"));

}  // namespace
}  // namespace interp
