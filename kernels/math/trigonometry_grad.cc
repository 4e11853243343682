// Gradients of circular and hyperbolic functions and their inverses.
#include <cmath>

#include "kernels/math/unary_grad.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp {
namespace {

// X@GRAD = Out@GRAD slope(X). The lambda type has no state.
template <typename Slope>
struct SlopeGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * Slope()(x);
  }
};

template <typename Slope>
OpDef TrigonometricGradDef(absl::string_view type, Slope) {
  return UnaryGradDef<SlopeGrad<Slope>>(type);
}

template <typename T>
T Squared(T x) {
  return x * x;
}

constexpr SecondGradient kSinSecond = SecondOfX("sin_double_grad");
constexpr SecondGradient kCosSecond = SecondOfX("cos_double_grad");

INTERP_REGISTER_OP(WithSecond<kSinSecond>(TrigonometricGradDef("sin_grad", [](auto x) {
  return std::cos(x);
})));
INTERP_REGISTER_OP(WithSecond<kCosSecond>(TrigonometricGradDef("cos_grad", [](auto x) {
  return -std::sin(x);
})));
INTERP_REGISTER_OP(TrigonometricGradDef("tan_grad",
                                        [](auto x) { return 1 / Squared(std::cos(x)); }));
INTERP_REGISTER_OP(TrigonometricGradDef("asin_grad",
                                        [](auto x) { return 1 / std::sqrt(1 - x * x); }));
INTERP_REGISTER_OP(TrigonometricGradDef("acos_grad",
                                        [](auto x) { return -1 / std::sqrt(1 - x * x); }));
INTERP_REGISTER_OP(TrigonometricGradDef("atan_grad", [](auto x) { return 1 / (1 + x * x); }));
INTERP_REGISTER_OP(TrigonometricGradDef("sinh_grad", [](auto x) { return std::cosh(x); }));
INTERP_REGISTER_OP(TrigonometricGradDef("cosh_grad", [](auto x) { return std::sinh(x); }));
INTERP_REGISTER_OP(TrigonometricGradDef("asinh_grad",
                                        [](auto x) { return 1 / std::sqrt(x * x + 1); }));
INTERP_REGISTER_OP(TrigonometricGradDef("acosh_grad",
                                        [](auto x) { return 1 / std::sqrt(x * x - 1); }));
INTERP_REGISTER_OP(TrigonometricGradDef("atanh_grad", [](auto x) { return 1 / (1 - x * x); }));

}  // namespace
}  // namespace interp
