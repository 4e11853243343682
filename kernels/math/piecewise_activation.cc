// Activations made of straight lines: relu, relu6, leaky_relu, brelu, hard_sigmoid, hard_swish,
// hard_shrink, softshrink, thresholded_relu. Comparisons are written so that NaN stays NaN, but of
// relu, which makes it 0.
#include "kernels/math/activation_attrs.h"
#include "kernels/math/unary.h"

namespace interp {
namespace {

template <typename T>
T Clamp(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

struct Relu {
  template <typename T>
  T operator()(T x) const {
    return x > 0 ? x : T{0};
  }
};

struct Relu6 : Relu6Attrs {
  template <typename T>
  T operator()(T x) const {
    return Clamp(x, T{0}, static_cast<T>(threshold));
  }
};

struct LeakyRelu : LeakyReluAttrs {
  template <typename T>
  T operator()(T x) const {
    const T scaled = x * static_cast<T>(alpha);
    return x < 0 ? scaled : x;
  }
};

// Paddle's hardtanh.
struct BRelu : BReluAttrs {
  template <typename T>
  T operator()(T x) const {
    return Clamp(x, static_cast<T>(low), static_cast<T>(high));
  }
};

struct HardSigmoid : HardSigmoidAttrs {
  template <typename T>
  T operator()(T x) const {
    return Clamp(x * static_cast<T>(slope) + static_cast<T>(offset), T{0}, T{1});
  }
};

// x relu6(x + 3) / 6. The attributes threshold, scale and offset are ignored, as Paddle's kernel
// does.
struct HardSwish {
  template <typename T>
  T operator()(T x) const {
    constexpr T kInverse = T{1} / T{6};
    return x * Clamp(x + T{3}, T{0}, T{6}) * kInverse;
  }
};

struct HardShrink : HardShrinkAttrs {
  template <typename T>
  T operator()(T x) const {
    const T limit = static_cast<T>(threshold);
    return x >= -limit && x <= limit ? T{0} : x;
  }
};

struct SoftShrink : SoftShrinkAttrs {
  template <typename T>
  T operator()(T x) const {
    const T limit = static_cast<T>(lambda);
    const T low = x + limit;
    const T high = x - limit;
    return x < -limit ? low : x <= limit ? T{0} : high;
  }
};

struct ThresholdedRelu : ThresholdedReluAttrs {
  template <typename T>
  T operator()(T x) const {
    return x <= static_cast<T>(threshold) ? static_cast<T>(value) : x;
  }
};

INTERP_REGISTER_OP(ActivationDef<Relu>("relu", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(ActivationDef<Relu6>("relu6", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(ActivationDef<LeakyRelu>("leaky_relu", UnaryGradient::kOfX));
INTERP_REGISTER_OP(FloatUnaryDef<BRelu>("brelu", UnaryGradient::kOfX));
INTERP_REGISTER_OP(ActivationDef<HardSigmoid>("hard_sigmoid", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(ActivationDef<HardSwish>("hard_swish", UnaryGradient::kOfX));
INTERP_REGISTER_OP(FloatUnaryDef<HardShrink>("hard_shrink", UnaryGradient::kOfX));
INTERP_REGISTER_OP(FloatUnaryDef<SoftShrink>("softshrink", UnaryGradient::kOfX));
INTERP_REGISTER_OP(FloatUnaryDef<ThresholdedRelu>("thresholded_relu", UnaryGradient::kOfX));

}  // namespace
}  // namespace interp
