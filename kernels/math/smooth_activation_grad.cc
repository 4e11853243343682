// Gradients of activations made of exponentials: sigmoid, tanh and what is built on them.
#include <cmath>
#include <numbers>

#include "kernels/math/activation_attrs.h"
#include "kernels/math/unary_grad.h"
#include "kernels/util/erf_rows.h"
#include "kernels/util/second_gradient_slots.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

struct SigmoidGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return grad * out * (T{1} - out);
  }
};

struct LogSigmoidGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * Sigmoid(-x);
  }
};

struct TanhGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    return grad * (T{1} - out * out);
  }
};

struct TanhShrinkGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T t = Tanh(x);
    return grad * t * t;
  }
};

struct STanhGrad : STanhAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T t = Tanh(static_cast<T>(a) * x);
    return grad * static_cast<T>(a) * static_cast<T>(b) * (T{1} - t * t);
  }
};

struct EluGrad : EluAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfBoth;
  template <typename T>
  T operator()(T x, T grad) const {
    const T below = grad * static_cast<T>(alpha) * Exp(x);
    return x > 0 ? grad : below;
  }
};

// Below 0, Out = scale alpha (e^x - 1).
struct SeluGrad : SeluAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    const T below = out + static_cast<T>(alpha) * static_cast<T>(scale);
    return grad * (out > 0 ? static_cast<T>(scale) : below);
  }
};

struct CeluGrad : CeluAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T below = grad * Exp(x / static_cast<T>(alpha));
    return x > 0 ? grad : below;
  }
};

struct SwishGrad : SwishAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T scaled = static_cast<T>(beta) * x;
    const T s = Sigmoid(scaled);
    return grad * s * (T{1} + scaled * (T{1} - s));
  }
};

struct SiluGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfBoth;
  template <typename T>
  T operator()(T x, T grad) const {
    const T s = Sigmoid(x);
    return grad * s * (T{1} + x * (T{1} - s));
  }
};

struct SoftplusGrad : SoftplusAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T scaled = static_cast<T>(beta) * x;
    const T curve = grad * Sigmoid(scaled);
    return scaled > static_cast<T>(threshold) ? grad : curve;
  }
};

// Paddle compares Out, not X, with the threshold.
struct SoftReluGrad : SoftReluAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfOut;
  template <typename T>
  T operator()(T out, T grad) const {
    const T limit = static_cast<T>(threshold);
    const T curve = -grad * Expm1(-out);
    const bool passes = (out > -limit) & (out < limit);
    return passes ? curve : T{0};
  }
};

struct SoftsignGrad {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T size = T{1} + std::abs(x);
    return grad / (size * size);
  }
};

// With s = softplus(x), Out = x tanh(s) and the slope of s is 1 - e^-s. Paddle takes that for the
// slope also above the threshold, which only thresholds far below the default show.
struct MishGrad : MishAttrs {
  static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
  template <typename T>
  T operator()(T x, T grad) const {
    const T curve = (x > 0 ? x : T{0}) + Log1p(Exp(-std::abs(x)));
    const T s = x > static_cast<T>(threshold) ? x : curve;
    const T t = Tanh(s);
    return grad * (t - x * (T{1} - t * t) * Expm1(-s));
  }
};

struct GeluGrad {
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * GeluSlope(x);
  }
};

struct GeluTanhGrad {
  template <typename T>
  T operator()(T x, T grad) const {
    constexpr T kSqrt2OverPi = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
    const T square = x * x;
    const T t = Tanh(kSqrt2OverPi * x * (T{1} + T(0.044715) * square));
    const T slope = kSqrt2OverPi * (T{1} + T(3 * 0.044715) * square);
    return grad * T(0.5) * (T{1} + t + x * (T{1} - t * t) * slope);
  }
};

template <typename T>
absl::Status RunGeluGrad(KernelContext& ctx) {
  if (ctx.attrs<GeluAttrs>().approximate) {
    MapUnaryGrad<T>(ctx, unary_grad::kX, GeluTanhGrad());
  } else if constexpr (std::is_same_v<T, float>) {
    MapUnaryGradRows(ctx, unary_grad::kX, GeluGradRow);
  } else {
    MapUnaryGrad<T>(ctx, unary_grad::kX, GeluGrad());
  }
  return absl::OkStatus();
}

OpDef GeluGradDef() {
  OpDef def = PlainUnaryGradDef("gelu_grad", unary_grad::kX,
                                {{DType::kFloat32, RunGeluGrad<float>},
                                 {DType::kFloat64, RunGeluGrad<double>},
                                 {DType::kBFloat16, RunGeluGrad<bfloat16>}});
  def.parse = ParseAttrs<GeluAttrs, GeluAttrs::Read>;
  return def;
}

constexpr SecondGradient kSigmoidSecond = {
    .type = "sigmoid_grad_grad",
    .values = {{{"Out", "Out"}, {"fwd_grad_out", "Out@GRAD"}}},
    .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
    .results = {{{"Out@GRAD", "Out"}, {"fwd_grad_out@GRAD", "Out@GRAD"}}}};
constexpr SecondGradient kTanhSecond = {
    .type = "tanh_grad_grad",
    .values = {{{"Out", "Out"}, {"grad_out", "Out@GRAD"}}},
    .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
    .results = {{{"Out@GRAD", "Out"}, {"grad_out@GRAD", "Out@GRAD"}}}};
constexpr SecondGradient kEluSecond = SecondOfX("elu_grad_grad");
constexpr SecondGradient kCeluSecond = SecondOfX("celu_grad_grad");
constexpr SecondGradient kSoftplusSecond = SecondOfX("softplus_double_grad");

INTERP_REGISTER_OP(WithSecond<kSigmoidSecond>(ActivationGradDef<SigmoidGrad>("sigmoid_grad")));
INTERP_REGISTER_OP(UnaryGradDef<LogSigmoidGrad>("logsigmoid_grad"));
INTERP_REGISTER_OP(WithSecond<kTanhSecond>(ActivationGradDef<TanhGrad>("tanh_grad")));
INTERP_REGISTER_OP(UnaryGradDef<TanhShrinkGrad>("tanh_shrink_grad"));
INTERP_REGISTER_OP(UnaryGradDef<STanhGrad>("stanh_grad"));
INTERP_REGISTER_OP(WithSecond<kEluSecond>(ActivationGradDef<EluGrad>("elu_grad")));
INTERP_REGISTER_OP(UnaryGradDef<SeluGrad>("selu_grad"));
INTERP_REGISTER_OP(WithSecond<kCeluSecond>(UnaryGradDef<CeluGrad>("celu_grad")));
INTERP_REGISTER_OP(ActivationGradDef<SwishGrad>("swish_grad"));
INTERP_REGISTER_OP(ActivationGradDef<SiluGrad>("silu_grad"));
INTERP_REGISTER_OP(WithSecond<kSoftplusSecond>(UnaryGradDef<SoftplusGrad>("softplus_grad")));
INTERP_REGISTER_OP(UnaryGradDef<SoftReluGrad>("soft_relu_grad"));
INTERP_REGISTER_OP(UnaryGradDef<SoftsignGrad>("softsign_grad"));
INTERP_REGISTER_OP(ActivationGradDef<MishGrad>("mish_grad"));
INTERP_REGISTER_OP(GeluGradDef());

}  // namespace
}  // namespace interp
