// Gradients of exp, expm1, log, log2, log10, log1p, erf, logit.
#include <cmath>
#include <numbers>

#include "kernels/math/activation_attrs.h"
#include "kernels/math/unary_grad.h"
#include "kernels/util/second_gradient_slots.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

struct ExpGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return grad * out;
  }
};

struct Expm1Grad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return grad * (out + T{1});
  }
};

struct LogGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad / x;
  }
};

struct Log2Grad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad / (x * std::numbers::ln2_v<T>);
  }
};

struct Log10Grad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad / (x * std::numbers::ln10_v<T>);
  }
};

struct Log1pGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad / (x + T{1});
  }
};

struct ErfGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * (T{2} * std::numbers::inv_sqrtpi_v<T>)*Exp(-x * x);
  }
};

// 0 where X is outside of [eps, 1 - eps].
struct LogitGrad : LogitAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T low = static_cast<T>(eps);
    const bool outside = (x < low) | (x > T{1} - low);
    const T inside = grad / (x * (T{1} - x));
    return outside ? T{0} : inside;
  }
};

constexpr SecondGradient kLogSecond = SecondOfX("log_grad_grad");

INTERP_REGISTER_OP(UnaryGradDef<ExpGrad>("exp_grad"));
INTERP_REGISTER_OP(UnaryGradDef<Expm1Grad>("expm1_grad"));
INTERP_REGISTER_OP(WithSecond<kLogSecond>(UnaryGradDef<LogGrad>("log_grad")));
INTERP_REGISTER_OP(UnaryGradDef<Log2Grad>("log2_grad"));
INTERP_REGISTER_OP(UnaryGradDef<Log10Grad>("log10_grad"));
INTERP_REGISTER_OP(UnaryGradDef<Log1pGrad>("log1p_grad"));
INTERP_REGISTER_OP(UnaryGradDef<ErfGrad>("erf_grad"));
INTERP_REGISTER_OP(UnaryGradDef<LogitGrad>("logit_grad"));

}  // namespace
}  // namespace interp
