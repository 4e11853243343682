// Activations made of exponentials: sigmoid, tanh and what is built on them.
#include <cmath>
#include <numbers>

#include "kernels/math/activation_attrs.h"
#include "kernels/math/unary.h"
#include "kernels/util/erf_rows.h"
#include "kernels/util/logistic_rows.h"
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
  void Row(const float* x, float* out, int64_t n) const { SigmoidRow(x, out, n); }
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
struct STanh : STanhAttrs {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(b) * Tanh(static_cast<T>(a) * x);
  }
};

// alpha (e^x - 1) below 0
struct Elu : EluAttrs {
  template <typename T>
  T operator()(T x) const {
    const T below = static_cast<T>(alpha) * Expm1(x);
    return x < 0 ? below : x;
  }
};

struct Selu : SeluAttrs {
  template <typename T>
  T operator()(T x) const {
    const T below = static_cast<T>(alpha) * Expm1(x);
    return static_cast<T>(scale) * (x < 0 ? below : x);
  }
};

struct Celu : CeluAttrs {
  template <typename T>
  T operator()(T x) const {
    const T below = static_cast<T>(alpha) * Expm1(x / static_cast<T>(alpha));
    return x < 0 ? below : x;
  }
};

// x sigmoid(beta x)
struct Swish : SwishAttrs {
  template <typename T>
  T operator()(T x) const {
    return x * Sigmoid(static_cast<T>(beta) * x);
  }
  void Row(const float* x, float* out, int64_t n) const { SwishRow(beta, x, out, n); }
};

struct Silu {
  template <typename T>
  T operator()(T x) const {
    return x * Sigmoid(x);
  }
  void Row(const float* x, float* out, int64_t n) const { SwishRow(1, x, out, n); }
};

// log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold.
struct Softplus : SoftplusAttrs {
  template <typename T>
  T operator()(T x) const {
    const T scaled = static_cast<T>(beta) * x;
    const T curve = LogOnePlusExp(scaled) / static_cast<T>(beta);
    return scaled > static_cast<T>(threshold) ? x : curve;
  }
};

// log(1 + e^x) of x clipped to the threshold.
struct SoftRelu : SoftReluAttrs {
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
struct Mish : MishAttrs {
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

struct GeluOp {
  template <typename T>
  T operator()(T x) const {
    return Gelu(x);
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

template <typename T>
absl::Status RunGelu(KernelContext& ctx) {
  if (ctx.attrs<GeluAttrs>().approximate) {
    MapUnary<T, T>(ctx, GeluTanh());
  } else if constexpr (std::is_same_v<T, float>) {
    MapUnaryRows(ctx, GeluRow);
  } else {
    MapUnary<T, T>(ctx, GeluOp());
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(ActivationDef<SigmoidOp>("sigmoid", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(FloatUnaryDef<LogSigmoid>("logsigmoid", UnaryGradient::kOfX));
INTERP_REGISTER_OP(ActivationDef<TanhOp>("tanh", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(FloatUnaryDef<TanhShrink>("tanh_shrink", UnaryGradient::kOfX));
INTERP_REGISTER_OP(FloatUnaryDef<STanh>("stanh", UnaryGradient::kOfX));
INTERP_REGISTER_OP(ActivationDef<Elu>("elu", UnaryGradient::kOfBoth));
INTERP_REGISTER_OP(FloatUnaryDef<Selu>("selu", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(FloatUnaryDef<Celu>("celu", UnaryGradient::kOfX));
INTERP_REGISTER_OP(ActivationDef<Swish>("swish", UnaryGradient::kOfX));
INTERP_REGISTER_OP(ActivationDef<Silu>("silu", UnaryGradient::kOfBoth));
INTERP_REGISTER_OP(FloatUnaryDef<Softplus>("softplus", UnaryGradient::kOfX));
INTERP_REGISTER_OP(FloatUnaryDef<SoftRelu>("soft_relu", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(FloatUnaryDef<Softsign>("softsign", UnaryGradient::kOfX));
INTERP_REGISTER_OP(UnaryDef<Mish>("mish",
                                  {{DType::kFloat32, RunMish<float>},
                                   {DType::kFloat64, RunMish<double>},
                                   {DType::kFloat16, RunMish<float16>},
                                   {DType::kBFloat16, RunMish<bfloat16>}},
                                  UnaryGradient::kOfX));
INTERP_REGISTER_OP(UnaryDef<GeluAttrs>("gelu",
                                       {{DType::kFloat32, RunGelu<float>},
                                        {DType::kFloat64, RunGelu<double>},
                                        {DType::kFloat16, RunGelu<float16>},
                                        {DType::kBFloat16, RunGelu<bfloat16>}},
                                       UnaryGradient::kOfX));

}  // namespace
}  // namespace interp
