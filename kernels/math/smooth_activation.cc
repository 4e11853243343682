// Activations made of exponentials: sigmoid, tanh and what is built on them.
#include <cmath>
#include <numbers>

#include "kernels/math/unary.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

// log(1 + e^x) without overflow.
template <typename T>
T LogOnePlusExp(T x) {
  return (x > 0 ? x : T{0}) + Log1p(Exp(-std::abs(x)));
}

struct SigmoidOp {
  template <typename T>
  T operator()(T x) const {
    return Sigmoid(x);
  }
};

struct LogSigmoid {
  template <typename T>
  T operator()(T x) const {
    return -LogOnePlusExp(-x);
  }
};

struct TanhOp {
  template <typename T>
  T operator()(T x) const {
    return Tanh(x);
  }
};

struct TanhShrink {
  template <typename T>
  T operator()(T x) const {
    return x - Tanh(x);
  }
};

// scale_b tanh(scale_a x)
struct STanh {
  float a, b;
  static STanh Read(AttrReader& attrs) {
    return {attrs.Float("scale_a", 0.67f), attrs.Float("scale_b", 1.7159f)};
  }
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(b) * Tanh(static_cast<T>(a) * x);
  }
};

// alpha (e^x - 1) below 0
struct Elu {
  float alpha;
  static Elu Read(AttrReader& attrs) { return {attrs.Float("alpha", 1.0f)}; }
  template <typename T>
  T operator()(T x) const {
    const T below = static_cast<T>(alpha) * Expm1(x);
    return x < 0 ? below : x;
  }
};

struct Selu {
  float alpha, scale;
  static Selu Read(AttrReader& attrs) {
    return {attrs.Float("alpha", 1.6732632423543772f), attrs.Float("scale", 1.0507009873554805f)};
  }
  template <typename T>
  T operator()(T x) const {
    const T below = static_cast<T>(alpha) * Expm1(x);
    return static_cast<T>(scale) * (x < 0 ? below : x);
  }
};

struct Celu {
  float alpha;
  static Celu Read(AttrReader& attrs) {
    const float alpha = attrs.Float("alpha", 1.0f);
    if (alpha == 0.0f) attrs.Fail("attribute 'alpha' is 0, expected another value");
    return {alpha};
  }
  template <typename T>
  T operator()(T x) const {
    const T below = static_cast<T>(alpha) * Expm1(x / static_cast<T>(alpha));
    return x < 0 ? below : x;
  }
};

// x sigmoid(beta x). Programs of Paddle 2.x have no beta, older ones may.
struct Swish {
  float beta;
  static Swish Read(AttrReader& attrs) { return {attrs.Float("beta", 1.0f)}; }
  template <typename T>
  T operator()(T x) const {
    return x * Sigmoid(static_cast<T>(beta) * x);
  }
};

struct Silu {
  template <typename T>
  T operator()(T x) const {
    return x * Sigmoid(x);
  }
};

// log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold.
struct Softplus {
  float beta, threshold;
  static Softplus Read(AttrReader& attrs) {
    return {attrs.Float("beta", 1.0f), attrs.Float("threshold", 20.0f)};
  }
  template <typename T>
  T operator()(T x) const {
    const T scaled = static_cast<T>(beta) * x;
    const T curve = LogOnePlusExp(scaled) / static_cast<T>(beta);
    return scaled > static_cast<T>(threshold) ? x : curve;
  }
};

// log(1 + e^x) of x clipped to the threshold.
struct SoftRelu {
  float threshold;
  static SoftRelu Read(AttrReader& attrs) { return {attrs.Float("threshold", 40.0f)}; }
  template <typename T>
  T operator()(T x) const {
    const T limit = static_cast<T>(threshold);
    x = x < -limit ? -limit : x;
    return LogOnePlusExp(x > limit ? limit : x);
  }
};

struct Softsign {
  template <typename T>
  T operator()(T x) const {
    return x / (T{1} + std::abs(x));
  }
};

// x tanh(softplus(x)), with softplus(x) taken as x above the threshold.
struct Mish {
  float threshold;
  static Mish Read(AttrReader& attrs) { return {attrs.Float("threshold", 20.0f)}; }
  template <typename T>
  T operator()(T x) const {
    return x * Tanh(x > static_cast<T>(threshold) ? x : LogOnePlusExp(x));
  }
};

// The same for thresholds beyond which tanh is 1. With e = e^x, tanh(log(1 + e)) is
// e (e + 2) / (e (e + 2) + 2): one exponential instead of three.
struct MishFarThreshold {
  template <typename T>
  T operator()(T x) const {
    const T e = Exp(x > T{20} ? T{20} : x);
    const T numerator = e * (e + T{2});
    return x * (numerator / (numerator + T{2}));
  }
};

template <typename T>
absl::Status RunMish(KernelContext& ctx) {
  const Mish& mish = ctx.attrs<Mish>();
  if (mish.threshold >= 20.0f) {
    MapUnary<T, T>(ctx, MishFarThreshold());
  } else {
    MapUnary<T, T>(ctx, mish);
  }
  return absl::OkStatus();
}

struct Gelu {
  template <typename T>
  T operator()(T x) const {
    constexpr T kInverseSqrt2 = std::numbers::sqrt2_v<T> / 2;
    return T(0.5) * x * (T{1} + Erf(x * kInverseSqrt2));
  }
};

struct GeluTanh {
  template <typename T>
  T operator()(T x) const {
    constexpr T kSqrt2OverPi = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
    const T inner = kSqrt2OverPi * (x + T(0.044715) * x * x * x);
    return T(0.5) * x * (T{1} + Tanh(inner));
  }
};

struct GeluAttrs {
  bool approximate;
  static GeluAttrs Read(AttrReader& attrs) { return {attrs.Bool("approximate", false)}; }
};

template <typename T>
absl::Status RunGelu(KernelContext& ctx) {
  if (ctx.attrs<GeluAttrs>().approximate) {
    MapUnary<T, T>(ctx, GeluTanh());
  } else {
    MapUnary<T, T>(ctx, Gelu());
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(FloatUnaryDef<SigmoidOp>("sigmoid"));
INTERP_REGISTER_OP(FloatUnaryDef<LogSigmoid>("logsigmoid"));
INTERP_REGISTER_OP(FloatUnaryDef<TanhOp>("tanh"));
INTERP_REGISTER_OP(FloatUnaryDef<TanhShrink>("tanh_shrink"));
INTERP_REGISTER_OP(FloatUnaryDef<STanh>("stanh"));
INTERP_REGISTER_OP(FloatUnaryDef<Elu>("elu"));
INTERP_REGISTER_OP(FloatUnaryDef<Selu>("selu"));
INTERP_REGISTER_OP(FloatUnaryDef<Celu>("celu"));
INTERP_REGISTER_OP(FloatUnaryDef<Swish>("swish"));
INTERP_REGISTER_OP(FloatUnaryDef<Silu>("silu"));
INTERP_REGISTER_OP(FloatUnaryDef<Softplus>("softplus"));
INTERP_REGISTER_OP(FloatUnaryDef<SoftRelu>("soft_relu"));
INTERP_REGISTER_OP(FloatUnaryDef<Softsign>("softsign"));
INTERP_REGISTER_OP(UnaryDef<Mish>("mish", {{DType::kFloat32, RunMish<float>},
                                           {DType::kFloat64, RunMish<double>},
                                           {DType::kFloat16, RunMish<float16>}}));
INTERP_REGISTER_OP(UnaryDef<GeluAttrs>("gelu", {{DType::kFloat32, RunGelu<float>},
                                                {DType::kFloat64, RunGelu<double>},
                                                {DType::kFloat16, RunGelu<float16>}}));

}  // namespace
}  // namespace interp
