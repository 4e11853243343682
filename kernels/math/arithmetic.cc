// elementwise_add, _sub, _mul, _max, _min, _fmax, _fmin, _pow and minus: out = X op Y.
#include <algorithm>
#include <cmath>
#include <complex>

#include "kernels/math/binary.h"
#include "kernels/math/scaled_gradient.h"
#include "kernels/util/rows.h"

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

// A NaN in Y is the result, one in X is not: Paddle's choice. Extreme says which operand is Y.
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
struct Swapped {
  template <typename T>
  T operator()(T a, T b) const {
    return Op()(b, a);
  }
};

// Paddle gives its function the operand of more dimensions first, which counts for a NaN.
template <typename Op, typename T>
absl::Status Extreme(KernelContext& ctx) {
  const bool swaps = ctx.input(binary::kX).shape.rank() < ctx.input(binary::kY).shape.rank();
  return swaps ? Binary<Swapped<Op>, T>(ctx) : Binary<Op, T>(ctx);
}

// Selected rows times a number.
template <typename T>
absl::Status ScaleRows(KernelContext& ctx) {
  const Tensor& y = ctx.input(binary::kY);
  if (y.numel() != 1) {
    return InvalidArgument("'Y' is ", DescribeType(y),
                           ", expected one element beside selected rows");
  }
  const T factor = *y.data<T>();
  INTERP_RETURN_IF_ERROR(GiveRowsOf(ctx, binary::kX, binary::kOut));
  const T* const x = ctx.input(binary::kX).data<T>();
  T* const out = ctx.output(binary::kOut).mutable_data<T>();
  ParallelFor(ctx.num_threads(), ctx.input(binary::kX).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) out[i] = Mul()(x[i], factor);
              });
  return absl::OkStatus();
}

template <typename T>
absl::Status Multiply(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const bool rows, AreRows(ctx, binary::kX, binary::kOut));
  if (rows) return ScaleRows<T>(ctx);
  return Binary<Mul, T>(ctx);
}

template <typename Op>
OpDef NumberDef(absl::string_view type) {
  return ArithmeticDef(type,
                       BinaryKernels<Op, float, double, float16, bfloat16, int32_t, int64_t>(),
                       BinaryGradient());
}

template <typename Op, typename... Ts>
OpDef ExtremeDef(absl::string_view type) {
  return ArithmeticDef(type, {{DTypeOf<Ts>, Extreme<Op, Ts>}...}, BinaryGradient());
}

OpDef PowDef() {
  OpDef def = NumberDef<Pow>("elementwise_pow");
  def.precision = PrecisionRule::kFull;
  return def;
}

template <typename Op>
OpDef AnyNumberDef(absl::string_view type) {
  return ArithmeticDef(
      type,
      BinaryKernels<Op, float, double, float16, bfloat16, int32_t, int64_t, int16_t, int8_t,
                    uint8_t, std::complex<float>, std::complex<double>>(),
      BinaryGradient());
}

template <typename... Ts>
OpDef MulDef() {
  OpDef def = ArithmeticDef("elementwise_mul", {{DTypeOf<Ts>, Multiply<Ts>}...}, BinaryGradient());
  def.inputs[binary::kX].flags |= kMayBeRows;
  def.outputs[binary::kOut].flags |= kMayBeRows;
  return def;
}

absl::Status MakeMinusGradient(GradientMaker& maker) {
  const VarId gradient = maker.OutputGradients("Out")[0];
  AddScaledGradient(maker, gradient, maker.InputGradients("X")[0], /*factor=*/1.0f);
  AddScaledGradient(maker, gradient, maker.InputGradients("Y")[0], /*factor=*/-1.0f);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(AnyNumberDef<Add>("elementwise_add"));
// What Paddle's gradient makers of other releases add gradients with.
INTERP_REGISTER_OP(ArithmeticDef("grad_add", BinaryKernels<Add, float, double, int32_t, int64_t>(),
                                 {}));
INTERP_REGISTER_OP(AnyNumberDef<Sub>("elementwise_sub"));
INTERP_REGISTER_OP((MulDef<float, double, float16, bfloat16, int32_t, int64_t, int16_t, int8_t,
                           uint8_t, bool, std::complex<float>, std::complex<double>>()));
INTERP_REGISTER_OP(
    (ExtremeDef<Max, float, double, float16, bfloat16, int32_t, int64_t>("elementwise_max")));
INTERP_REGISTER_OP(
    (ExtremeDef<Min, float, double, float16, bfloat16, int32_t, int64_t>("elementwise_min")));
INTERP_REGISTER_OP(NumberDef<FMax>("elementwise_fmax"));
INTERP_REGISTER_OP(NumberDef<FMin>("elementwise_fmin"));
INTERP_REGISTER_OP(PowDef());
INTERP_REGISTER_OP(ArithmeticDef("minus", BinaryKernels<Sub, float>(),
                                 {.make = MakeMinusGradient}));

}  // namespace
}  // namespace interp
