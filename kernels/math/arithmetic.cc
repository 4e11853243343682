// elementwise_add, _sub, _mul, _max, _min, _fmax, _fmin, _pow and minus: out = X op Y.
#include <algorithm>
#include <cmath>

#include "kernels/math/binary.h"

namespace interp {
namespace {

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return WrapAdd(a, b);
  }
};

struct Sub {
  template <typename T>
  T operator()(T a, T b) const {
    return WrapSub(a, b);
  }
};

struct Mul {
  template <typename T>
  T operator()(T a, T b) const {
    return WrapMul(a, b);
  }
};

// A NaN in Y is the result, one in X is not: Paddle's choice.
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

// The operand that is not NaN, if one is.
struct FMax {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b || b != b ? a : b;
  }
};

struct FMin {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b || b != b ? a : b;
  }
};

struct Pow {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kIsInteger<T>) {
      return IntegerPower(a, b);
    } else {
      return std::pow(a, b);
    }
  }
};

template <typename Op>
std::vector<KernelDef> OrderKernels() {
  return BinaryKernels<Op, float, double, float16, int32_t, int64_t>();
}

INTERP_REGISTER_OP(ArithmeticDef(
    "elementwise_add",
    BinaryKernels<Add, float, double, float16, int32_t, int64_t, int16_t, int8_t, uint8_t>()));
INTERP_REGISTER_OP(ArithmeticDef(
    "elementwise_sub",
    BinaryKernels<Sub, float, double, float16, int32_t, int64_t, int16_t, int8_t, uint8_t>()));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_mul",
                                 BinaryKernels<Mul, float, double, float16, int32_t, int64_t,
                                               int16_t, int8_t, uint8_t, bool>()));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_max", OrderKernels<Max>()));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_min", OrderKernels<Min>()));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_fmax", OrderKernels<FMax>()));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_fmin", OrderKernels<FMin>()));
INTERP_REGISTER_OP(ArithmeticDef("elementwise_pow",
                                 BinaryKernels<Pow, float, double, float16, int32_t, int64_t>()));
INTERP_REGISTER_OP(ArithmeticDef("minus", BinaryKernels<Sub, float>()));

}  // namespace
}  // namespace interp
