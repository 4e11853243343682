// elementwise_div, _floordiv and _mod: out = X / Y, floor(X / Y) and X - Y floor(X / Y). Division
// of integers by zero is an error; floats follow IEEE 754.
#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

#include "kernels/math/binary.h"

namespace interp {
namespace {

// Integers: rounded towards zero.
struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kIsInteger<T>) {
      if (std::is_signed_v<T> && b == T(-1))
        return WrapSub(T{0}, a);  // the smallest / -1 overflows
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};

// The remainder has the sign of the divisor.
struct Modulo {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kIsInteger<T>) {
      const bool minus_one = std::is_signed_v<T> && b == T(-1);
      const T rest = minus_one ? T{0} : static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? WrapAdd(rest, b) : rest;
    } else {
      const T rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
};

struct FloorDivide {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kIsInteger<T>) {
      const T quotient = Divide()(a, b);
      const bool inexact = WrapMul(quotient, b) != a;
      return inexact && (a < 0) != (b < 0) ? WrapSub(quotient, T{1}) : quotient;
    } else {
      // Not floor(a / b): the quotient may round up to an integer.
      if (b == 0) return a / b;
      const T rest = std::fmod(a, b);  // with the sign of a
      const bool apart = rest != 0 && (rest < 0) != (b < 0);
      const T exact = (a - rest) / b - (apart ? T{1} : T{0});
      const T floor = std::floor(exact);
      return exact - floor > T(0.5) ? floor + 1 : floor;
    }
  }
};

// Binary, after a look for zeros in an integer divisor.
template <typename Op, typename T>
absl::Status Division(KernelContext& ctx) {
  if constexpr (kIsInteger<T>) {
    const Tensor& y = ctx.input(binary::kY);
    const T* divisors = y.data<T>();
    const T* end = divisors + y.numel();
    if (ctx.output(binary::kOut).numel() > 0 && std::find(divisors, end, T{0}) != end) {
      return InvalidArgument("integer division by zero: 'Y' contains 0");
    }
  }
  return Binary<Op, T>(ctx);
}

std::vector<KernelDef> WithComplex(std::vector<KernelDef> kernels) {
  kernels.push_back({DType::kComplex64, Binary<Divide, std::complex<float>>});
  kernels.push_back({DType::kComplex128, Binary<Divide, std::complex<double>>});
  return kernels;
}

template <typename Op>
std::vector<KernelDef> DivisionKernels() {
  const auto rows = []<typename... Ts>(std::tuple<Ts...>) {
    return std::vector<KernelDef>{{DTypeOf<Ts>, Division<Op, Ts>}...};
  };
  return rows(
      std::tuple<float, double, float16, bfloat16, int32_t, int64_t, int16_t, int8_t, uint8_t>());
}

GradientDef DivisionGradient() {
  return {.inputs = {"X", "Y", "Out", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}};
}

// Paddle has no gradient of the remainder either.
INTERP_REGISTER_OP(ArithmeticDef("elementwise_div", WithComplex(DivisionKernels<Divide>()),
                                 DivisionGradient()));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_floordiv", DivisionKernels<FloorDivide>(),
                                 {.none = true}));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_mod", DivisionKernels<Modulo>(), {.none = true}));

}  // namespace
}  // namespace interp
