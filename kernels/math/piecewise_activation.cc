// Activations made of straight lines: relu, relu6, leaky_relu, brelu, hard_sigmoid, hard_swish,
// hard_shrink, softshrink, thresholded_relu. Comparisons are written so that NaN stays NaN.
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
    return x < 0 ? T{0} : x;
  }
};

struct Relu6 {
  float threshold;
  static Relu6 Read(AttrReader& attrs) { return {attrs.Float("threshold", 6.0f)}; }
  template <typename T>
  T operator()(T x) const {
    return Clamp(x, T{0}, static_cast<T>(threshold));
  }
};

struct LeakyRelu {
  float alpha;
  static LeakyRelu Read(AttrReader& attrs) { return {attrs.Float("alpha", 0.02f)}; }
  template <typename T>
  T operator()(T x) const {
    const T scaled = x * static_cast<T>(alpha);
    return x < 0 ? scaled : x;
  }
};

// Paddle's hardtanh.
struct BRelu {
  float low, high;
  static BRelu Read(AttrReader& attrs) {
    return {attrs.Float("t_min", 0.0f), attrs.Float("t_max", 24.0f)};
  }
  template <typename T>
  T operator()(T x) const {
    return Clamp(x, static_cast<T>(low), static_cast<T>(high));
  }
};

struct HardSigmoid {
  float slope, offset;
  static HardSigmoid Read(AttrReader& attrs) {
    return {attrs.Float("slope", 0.2f), attrs.Float("offset", 0.5f)};
  }
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

struct HardShrink {
  float threshold;
  static HardShrink Read(AttrReader& attrs) { return {attrs.Float("threshold", 0.5f)}; }
  template <typename T>
  T operator()(T x) const {
    const T limit = static_cast<T>(threshold);
    return x >= -limit && x <= limit ? T{0} : x;
  }
};

struct SoftShrink {
  float lambda;
  static SoftShrink Read(AttrReader& attrs) { return {attrs.Float("lambda", 0.5f)}; }
  template <typename T>
  T operator()(T x) const {
    const T limit = static_cast<T>(lambda);
    const T low = x + limit;
    const T high = x - limit;
    return x < -limit ? low : x <= limit ? T{0} : high;
  }
};

struct ThresholdedRelu {
  float threshold, value;
  static ThresholdedRelu Read(AttrReader& attrs) {
    return {attrs.Float("threshold", 1.0f), attrs.Float("value", 0.0f)};
  }
  template <typename T>
  T operator()(T x) const {
    return x <= static_cast<T>(threshold) ? static_cast<T>(value) : x;
  }
};

INTERP_REGISTER_OP(FloatUnaryDef<Relu>("relu"));
INTERP_REGISTER_OP(FloatUnaryDef<Relu6>("relu6"));
INTERP_REGISTER_OP(FloatUnaryDef<LeakyRelu>("leaky_relu"));
INTERP_REGISTER_OP(FloatUnaryDef<BRelu>("brelu"));
INTERP_REGISTER_OP(FloatUnaryDef<HardSigmoid>("hard_sigmoid"));
INTERP_REGISTER_OP(FloatUnaryDef<HardSwish>("hard_swish"));
INTERP_REGISTER_OP(FloatUnaryDef<HardShrink>("hard_shrink"));
INTERP_REGISTER_OP(FloatUnaryDef<SoftShrink>("softshrink"));
INTERP_REGISTER_OP(FloatUnaryDef<ThresholdedRelu>("thresholded_relu"));

}  // namespace
}  // namespace interp
