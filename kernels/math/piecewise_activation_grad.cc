// Gradients of activations made of straight lines. Where two lines meet, the slopes are those that
// Paddle takes.
#include "kernels/math/activation_attrs.h"
#include "kernels/math/unary_grad.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp {
namespace {

struct ReluGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return out > 0 ? grad : T{0};
  }
};

struct Relu6Grad : Relu6Attrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    const bool passes = (out > 0) & (out < static_cast<T>(threshold));
    return passes ? grad : T{0};
  }
};

struct LeakyReluGrad : LeakyReluAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T scaled = grad * static_cast<T>(alpha);
    return x < 0 ? scaled : grad;
  }
};

struct BReluGrad : BReluAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const bool passes = (x > static_cast<T>(low)) & (x < static_cast<T>(high));
    return passes ? grad : T{0};
  }
};

struct HardSigmoidGrad : HardSigmoidAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    const T scaled = grad * static_cast<T>(slope);
    const bool passes = (out > 0) & (out < 1);
    return passes ? scaled : T{0};
  }
};

struct HardSwishGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T curve = grad * (x * (T{1} / T{3}) + T(0.5));
    const T below = x + T{3} > 0 ? curve : T{0};
    return x + T{3} < T{6} ? below : grad;
  }
};

struct HardShrinkGrad : HardShrinkAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T limit = static_cast<T>(threshold);
    const bool passes = (x < -limit) | (x > limit);
    return passes ? grad : T{0};
  }
};

struct SoftShrinkGrad : SoftShrinkAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T limit = static_cast<T>(lambda);
    const bool passes = (x < -limit) | (x > limit);
    return passes ? grad : T{0};
  }
};

struct ThresholdedReluGrad : ThresholdedReluAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return x > static_cast<T>(threshold) ? grad : T{0};
  }
};

constexpr SecondGradient kReluSecond = SecondOfPieces("relu_grad_grad", {"Out", "Out"});
constexpr SecondGradient kLeakyReluSecond = SecondOfPieces("leaky_relu_grad_grad", {"X", "X"});

INTERP_REGISTER_OP(WithSecond<kReluSecond>(ActivationGradDef<ReluGrad>("relu_grad")));
INTERP_REGISTER_OP(ActivationGradDef<Relu6Grad>("relu6_grad"));
INTERP_REGISTER_OP(
    WithSecond<kLeakyReluSecond>(ActivationGradDef<LeakyReluGrad>("leaky_relu_grad")));
INTERP_REGISTER_OP(UnaryGradDef<BReluGrad>("brelu_grad"));
INTERP_REGISTER_OP(ActivationGradDef<HardSigmoidGrad>("hard_sigmoid_grad"));
INTERP_REGISTER_OP(ActivationGradDef<HardSwishGrad>("hard_swish_grad"));
INTERP_REGISTER_OP(UnaryGradDef<HardShrinkGrad>("hard_shrink_grad"));
INTERP_REGISTER_OP(UnaryGradDef<SoftShrinkGrad>("softshrink_grad"));
INTERP_REGISTER_OP(UnaryGradDef<ThresholdedReluGrad>("thresholded_relu_grad"));

}  // namespace
}  // namespace interp
