// Special functions, element by element: lgamma, digamma, polygamma (derivative `n` of digamma),
// erfinv, and the Bessel functions i0 and i1 with i0e = exp(-|x|) i0, i1e = exp(-|x|) i1. With
// their gradients.
#include "kernels/math/special_functions.h"

#include "kernels/math/unary_grad.h"

namespace interp {
namespace {

// The slots of newer ops are in lower case.
OpDef LowerCase(OpDef def) {
  def.inputs = {{"x"}};
  def.outputs = {{"out"}};
  for (absl::string_view& slot : def.gradient.inputs) {
    slot = slot == "X" ? "x" : slot == "Out" ? "out" : "out@GRAD";
  }
  def.gradient.outputs = {"x@GRAD"};
  return def;
}
OpDef LowerCaseGrad(OpDef def) {
  constexpr absl::string_view kNames[] = {"x", "out", "out@GRAD"};
  for (size_t i = 0; i < def.inputs.size(); ++i) def.inputs[i].name = kNames[i];
  def.outputs[0].name = "x@GRAD";
  return def;
}

template <typename Op>
OpDef SpecialDef(absl::string_view type, UnaryGradient gradient) {
  return UnaryDef<Op>(type, UnaryKernels<Op, float, double>(), gradient);
}

struct Lgamma {
  template <typename T>
  T operator()(T x) const {
    // lgamma_r: lgamma writes a global variable. Of the float form the error is larger near 1.
    int sign = 0;
    return static_cast<T>(lgamma_r(static_cast<double>(x), &sign));
  }
};
struct LgammaGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * static_cast<T>(special::Digamma(x));
  }
};

struct Digamma {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(special::Digamma(x));
  }
};
struct DigammaGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * static_cast<T>(special::Polygamma(1, x));
  }
};

struct PolygammaAttrs {
  int n = 1;
  static PolygammaAttrs Read(AttrReader& attrs) {
    const int n = attrs.Int("n", 1);
    constexpr int kMost = 170;  // the factorial of more is no double
    if (n < 0 || n > kMost) {
      attrs.Fail(absl::StrCat("attribute 'n' is ", n, ", expected 0 to ", kMost));
    }
    return {n};
  }
};
struct PolygammaOf : PolygammaAttrs {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(special::Polygamma(n, x));
  }
};
struct PolygammaGrad : PolygammaAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * static_cast<T>(special::Polygamma(n + 1, x));
  }
};

struct ErfInv {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(special::ErfInv(x));
  }
};
struct ErfInvGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    const double slope = std::sqrt(std::numbers::pi) / 2 * std::exp(static_cast<double>(out) * out);
    return static_cast<T>(grad * slope);
  }
};

template <int kOrder>
struct Bessel {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(special::BesselI(kOrder, x));
  }
};
template <int kOrder>
struct ScaledBessel {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(special::ScaledBesselI(kOrder, x));
  }
};

struct I0Grad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return static_cast<T>(grad * special::BesselI(1, x));
  }
};
struct I0eGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const double sign = (x > 0) - (x < 0);
    return static_cast<T>(grad *
                          (special::ScaledBesselI(1, x) - sign * special::ScaledBesselI(0, x)));
  }
};
struct I1Grad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const double ratio = x == 0 ? 0.5 : special::BesselI(1, x) / x;
    return static_cast<T>(grad * (special::BesselI(0, x) - ratio));
  }
};
struct I1eGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    if (x == 0) return grad / T{2};
    const double sign = x > 0 ? 1 : -1;
    return static_cast<T>(grad *
                          (special::ScaledBesselI(0, x) -
                           special::ScaledBesselI(1, x) * (sign + 1 / static_cast<double>(x))));
  }
};

INTERP_REGISTER_OP(SpecialDef<Lgamma>("lgamma", UnaryGradient::kOfX));
INTERP_REGISTER_OP(UnaryGradDef<LgammaGrad>("lgamma_grad"));
INTERP_REGISTER_OP(SpecialDef<Digamma>("digamma", UnaryGradient::kOfX));
INTERP_REGISTER_OP(UnaryGradDef<DigammaGrad>("digamma_grad"));
INTERP_REGISTER_OP(LowerCase(SpecialDef<PolygammaOf>("polygamma", UnaryGradient::kOfX)));
INTERP_REGISTER_OP(LowerCaseGrad(UnaryGradDef<PolygammaGrad>("polygamma_grad")));
INTERP_REGISTER_OP(SpecialDef<ErfInv>("erfinv", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(UnaryGradDef<ErfInvGrad>("erfinv_grad"));
INTERP_REGISTER_OP(LowerCase(SpecialDef<Bessel<0>>("i0", UnaryGradient::kOfX)));
INTERP_REGISTER_OP(LowerCaseGrad(UnaryGradDef<I0Grad>("i0_grad")));
// Of these Paddle's gradients take Out as well.
INTERP_REGISTER_OP(LowerCase(SpecialDef<ScaledBessel<0>>("i0e", UnaryGradient::kOfBoth)));
INTERP_REGISTER_OP(LowerCaseGrad(UnaryGradDef<I0eGrad>("i0e_grad")));
INTERP_REGISTER_OP(LowerCase(SpecialDef<Bessel<1>>("i1", UnaryGradient::kOfBoth)));
INTERP_REGISTER_OP(LowerCaseGrad(UnaryGradDef<I1Grad>("i1_grad")));
INTERP_REGISTER_OP(LowerCase(SpecialDef<ScaledBessel<1>>("i1e", UnaryGradient::kOfBoth)));
INTERP_REGISTER_OP(LowerCaseGrad(UnaryGradDef<I1eGrad>("i1e_grad")));

}  // namespace
}  // namespace interp
