// Roots, powers and rounding: sqrt, rsqrt, square, reciprocal, abs, ceil, floor, round, trunc,
// sign.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/complex/complex_dtype.h"
#include "kernels/math/scaled_gradient.h"
#include "kernels/math/unary.h"

namespace interp {
namespace {

// Like Paddle's vector code, the float form has no root of infinity but NaN; see FloatSqrt.
struct Sqrt {
  template <typename T>
  T operator()(T x) const {
    const T root = std::sqrt(x);
    const bool finite = !std::is_same_v<T, float> || x <= std::numeric_limits<T>::max();
    return finite ? root : std::numeric_limits<T>::quiet_NaN();
  }
};

struct Rsqrt {
  template <typename T>
  T operator()(T x) const {
    return T{1} / std::sqrt(x);
  }
};

struct Square {
  template <typename T>
  T operator()(T x) const {
    return WrapMul(x, x);
  }
};

struct Reciprocal {
  template <typename T>
  T operator()(T x) const {
    return T{1} / x;
  }
};

struct Abs {
  template <typename T>
  auto operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? WrapSub(T{0}, x) : x;
    } else {
      return std::abs(x);
    }
  }
};

struct Ceil {
  template <typename T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};

struct Floor {
  template <typename T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

// Half away from zero. Adding the number below 1/2, not 1/2, keeps the number below 1/2 at 0.
struct Round {
  template <typename T>
  T operator()(T x) const {
    const T half = std::nextafter(T(0.5), T{0});
    return std::trunc(x + std::copysign(half, x));
  }
};

struct Trunc {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x;
    } else {
      return std::trunc(x);
    }
  }
};

// -1, 0 or 1; NaN stays.
struct Sign {
  template <typename T>
  T operator()(T x) const {
    const T sign = static_cast<T>((x > 0) - (x < 0));
    return x == x ? sign : x;
  }
};

// Zero, as Paddle writes it.
absl::Status MakeSignGradient(GradientMaker& maker) {
  AddScaledGradient(maker, maker.OutputGradients("Out")[0], maker.InputGradients("X")[0],
                    /*factor=*/0.0f);
  return absl::OkStatus();
}

// The modulus of a complex number is real.
OpDef AbsDef() {
  std::vector<KernelDef> kernels = UnaryKernels<Abs, float, double, float16, int32_t, int64_t>();
  kernels.push_back({.dtype = DType::kComplex64,
                     .run = Unary<Abs, std::complex<float>, float>,
                     .inplace = false});
  kernels.push_back({.dtype = DType::kComplex128,
                     .run = Unary<Abs, std::complex<double>, double>,
                     .inplace = false});
  OpDef def = UnaryDef<Abs>("abs", std::move(kernels), UnaryGradient::kOfX);
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(unary::kOut, RealDType(ctx.kernel())); };
  def.infer = InferUnaryWithoutLod;
  return def;
}

// The elements behind the last whole vector, which may be all, have the root of the standard
// library.
absl::Status FloatSqrt(KernelContext& ctx) {
  constexpr int64_t kVector = 8;
  const Tensor& x = ctx.input(unary::kX);
  const int64_t rest = x.numel() % kVector;
  const int64_t whole = x.numel() - rest;
  std::array<float, kVector> roots;
  for (int64_t i = 0; i < rest; ++i) roots[i] = std::sqrt(x.data<float>()[whole + i]);
  INTERP_RETURN_IF_ERROR((Unary<Sqrt, float>(ctx)));
  std::copy_n(roots.begin(), rest, ctx.output(unary::kOut).mutable_data<float>() + whole);
  return absl::OkStatus();
}

OpDef SqrtDef() {
  std::vector<KernelDef> kernels = RowsUnaryKernels<Sqrt, float, double, float16>();
  kernels[0].run = WithRows<FloatSqrt>;
  return TakingRows(UnaryDef<Sqrt>("sqrt", std::move(kernels), UnaryGradient::kOfOut));
}

OpDef SignDef() {
  OpDef def =
      TakingRows(PlainUnaryDef("sign", RowsUnaryKernels<Sign, float, double, float16, int32_t,
                                                        int64_t, int16_t, int8_t, uint8_t>()));
  def.gradient = {.make = MakeSignGradient};
  return def;
}

INTERP_REGISTER_OP(SqrtDef());
INTERP_REGISTER_OP(FloatUnaryDef<Rsqrt>("rsqrt", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(FloatUnaryDef<Reciprocal>("reciprocal", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(FloatUnaryDef<Ceil>("ceil", UnaryGradient::kZero));
INTERP_REGISTER_OP(FloatUnaryDef<Floor>("floor", UnaryGradient::kZero));
INTERP_REGISTER_OP(FloatUnaryDef<Round>("round", UnaryGradient::kZero));
INTERP_REGISTER_OP(TakingRows(
    UnaryDef<Square>("square", RowsUnaryKernels<Square, float, double, float16, int32_t, int64_t>(),
                     UnaryGradient::kOfX)));
INTERP_REGISTER_OP(AbsDef());
INTERP_REGISTER_OP(UnaryDef<Trunc>("trunc",
                                   UnaryKernels<Trunc, float, double, float16, int32_t, int64_t>(),
                                   UnaryGradient::kZero));
INTERP_REGISTER_OP(SignDef());

}  // namespace
}  // namespace interp
