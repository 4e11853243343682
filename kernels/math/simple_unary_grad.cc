// Gradients of sqrt, rsqrt, square, reciprocal and abs; those of ceil, floor, round and trunc are
// 0.
#include "kernels/complex/complex_dtype.h"
#include "kernels/math/unary_grad.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp {
namespace {

struct SqrtGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return T(0.5) * grad / out;
  }
};

struct RsqrtGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return T(-0.5) * grad * out * out * out;
  }
};

struct SquareGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return WrapMul(WrapMul(grad, T{2}), x);
  }
};

struct ReciprocalGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return -grad * out * out;
  }
};

// As in Paddle, infinite numbers and NaN have none.
struct AbsGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    if constexpr (kIsComplex<T> || std::is_floating_point_v<T>) {
      return x == T{0} ? T{0} : grad * (x / std::abs(x));
    } else {
      return grad * static_cast<T>((x > 0) - (x < 0));
    }
  }
};

struct ZeroGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kZero;
  template <typename T>
  T operator()(T, T) const {
    return T{0};
  }
};

constexpr SecondGradient kSqrtSecond = SecondOfRoot("sqrt_grad_grad");
constexpr SecondGradient kRsqrtSecond = SecondOfRoot("rsqrt_grad_grad");
constexpr SecondGradient kSquareSecond = SecondOfX("square_grad_grad");
constexpr SecondGradient kAbsSecond = SecondOfPieces("abs_double_grad", {"x", "X"});

INTERP_REGISTER_OP(WithSecond<kSqrtSecond>(UnaryGradDef<SqrtGrad>("sqrt_grad")));
INTERP_REGISTER_OP(WithSecond<kRsqrtSecond>(UnaryGradDef<RsqrtGrad>("rsqrt_grad")));
INTERP_REGISTER_OP(WithSecond<kSquareSecond>(NumberUnaryGradDef<SquareGrad>("square_grad")));
INTERP_REGISTER_OP(UnaryGradDef<ReciprocalGrad>("reciprocal_grad"));
// Out@GRAD is real; the plan casts it to the dtype of X.
OpDef AbsGradDef() {
  OpDef def = NumberUnaryGradDef<AbsGrad>("abs_grad");
  def.kernels.push_back({DType::kComplex64, UnaryGrad<AbsGrad, std::complex<float>>});
  def.kernels.push_back({DType::kComplex128, UnaryGrad<AbsGrad, std::complex<double>>});
  return def;
}

INTERP_REGISTER_OP(WithSecond<kAbsSecond>(AbsGradDef()));
INTERP_REGISTER_OP(UnaryGradDef<ZeroGrad>("ceil_grad"));
INTERP_REGISTER_OP(UnaryGradDef<ZeroGrad>("floor_grad"));
INTERP_REGISTER_OP(UnaryGradDef<ZeroGrad>("round_grad"));
INTERP_REGISTER_OP(UnaryGradDef<ZeroGrad>("trunc_grad"));

}  // namespace
}  // namespace interp
