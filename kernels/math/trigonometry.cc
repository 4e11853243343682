// Circular and hyperbolic functions and their inverses, from the standard library: programs use
// them on small tensors (position codes, angles of boxes).
#include <cmath>

#include "kernels/math/unary.h"

namespace interp {
namespace {

// Fits one overloaded function of <cmath> to UnaryDef. The lambda type has no state.
template <typename F>
OpDef TrigonometricDef(absl::string_view type, F) {
  return FloatUnaryDef<F>(type, UnaryGradient::kOfX);
}

INTERP_REGISTER_OP(TrigonometricDef("sin", [](auto x) { return std::sin(x); }));
INTERP_REGISTER_OP(TrigonometricDef("cos", [](auto x) { return std::cos(x); }));
INTERP_REGISTER_OP(TrigonometricDef("tan", [](auto x) { return std::tan(x); }));
INTERP_REGISTER_OP(TrigonometricDef("asin", [](auto x) { return std::asin(x); }));
INTERP_REGISTER_OP(TrigonometricDef("acos", [](auto x) { return std::acos(x); }));
INTERP_REGISTER_OP(TrigonometricDef("atan", [](auto x) { return std::atan(x); }));
INTERP_REGISTER_OP(TrigonometricDef("sinh", [](auto x) { return std::sinh(x); }));
INTERP_REGISTER_OP(TrigonometricDef("cosh", [](auto x) { return std::cosh(x); }));
INTERP_REGISTER_OP(TrigonometricDef("asinh", [](auto x) { return std::asinh(x); }));
INTERP_REGISTER_OP(TrigonometricDef("acosh", [](auto x) { return std::acosh(x); }));
INTERP_REGISTER_OP(TrigonometricDef("atanh", [](auto x) { return std::atanh(x); }));

}  // namespace
}  // namespace interp
