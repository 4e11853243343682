// elementwise_add, _sub, _mul, _max, _min, _fmax, _fmin, _pow and minus: out = X op Y.
#include <algorithm>
#include <cmath>

#include "kernels/math/binary.h"
#include "kernels/math/scaled_gradient.h"

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
OpDef NumberDef(absl::string_view type) {
  return ArithmeticDef(type, BinaryKernels<Op, float, double, float16, int32_t, int64_t>(),
                       BinaryGradient());
}

template <typename Op>
OpDef AnyNumberDef(absl::string_view type) {
  return ArithmeticDef(
      type, BinaryKernels<Op, float, double, float16, int32_t, int64_t, int16_t, int8_t, uint8_t>(),
      BinaryGradient());
}

OpDef MulDef() {
  OpDef def = AnyNumberDef<Mul>("elementwise_mul");
  def.kernels.push_back({DType::kBool, Binary<Mul, bool>});
  return def;
}

absl::Status MakeMinusGradient(GradientMaker& maker) {
  const VarId gradient = maker.OutputGradients("Out")[0];
  AddScaledGradient(maker, gradient, maker.InputGradients("X")[0], /*factor=*/1.0f);
  AddScaledGradient(maker, gradient, maker.InputGradients("Y")[0], /*factor=*/-1.0f);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(AnyNumberDef<Add>("elementwise_add"));
INTERP_REGISTER_OP(AnyNumberDef<Sub>("elementwise_sub"));
INTERP_REGISTER_OP(MulDef());
INTERP_REGISTER_OP(NumberDef<Max>("elementwise_max"));
INTERP_REGISTER_OP(NumberDef<Min>("elementwise_min"));
INTERP_REGISTER_OP(NumberDef<FMax>("elementwise_fmax"));
INTERP_REGISTER_OP(NumberDef<FMin>("elementwise_fmin"));
INTERP_REGISTER_OP(NumberDef<Pow>("elementwise_pow"));
INTERP_REGISTER_OP(ArithmeticDef("minus", BinaryKernels<Sub, float>(),
                                 {.make = MakeMinusGradient}));

}  // namespace
}  // namespace interp
