// logical_and, _or, _xor, _not (of any dtype, with a bool result) and bitwise_and, _or, _xor, _not.
#include <complex>

#include "kernels/complex/complex_dtype.h"
#include "kernels/math/binary.h"
#include "kernels/math/unary.h"

namespace interp {
namespace {

struct LogicalAnd {
  template <typename T>
  bool operator()(T a, T b) const {
    const bool first = a != T{};
    const bool second = b != T{};
    return first & second;
  }
};

struct LogicalOr {
  template <typename T>
  bool operator()(T a, T b) const {
    const bool first = a != T{};
    const bool second = b != T{};
    return first | second;
  }
};

struct LogicalXor {
  template <typename T>
  bool operator()(T a, T b) const {
    return (a != T{}) != (b != T{});
  }
};

struct LogicalNot {
  template <typename T>
  bool operator()(T x) const {
    return x == T{};
  }
};

struct BitwiseAnd {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

struct BitwiseOr {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

struct BitwiseXor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

struct BitwiseNot {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

template <typename Op>
OpDef LogicalDef(absl::string_view type) {
  return PredicateDef(type, PredicateKernels<Op, bool, float, double, int32_t, int64_t, int16_t,
                                             int8_t, std::complex<float>, std::complex<double>>());
}

template <typename Op, typename... Ts>
std::vector<KernelDef> NotRows() {
  return {{DTypeOf<Ts>, Unary<Op, Ts, bool>}...};
}

OpDef LogicalNotDef() {
  OpDef def = PlainUnaryDef(
      "logical_not", NotRows<LogicalNot, bool, float, double, int32_t, int64_t, int16_t, int8_t,
                             std::complex<float>, std::complex<double>>());
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(unary::kOut, DType::kBool); };
  def.inplace = {};
  def.gradient = {.none = true};
  return def;
}

template <typename Op>
OpDef BitwiseDef(absl::string_view type) {
  return ArithmeticDef(type, BinaryKernels<Op, bool, int32_t, int64_t, int16_t, int8_t, uint8_t>(),
                       {.none = true});
}

OpDef BitwiseNotDef() {
  OpDef def = PlainUnaryDef(
      "bitwise_not", UnaryKernels<BitwiseNot, bool, int32_t, int64_t, int16_t, int8_t, uint8_t>());
  def.gradient = {.none = true};
  return def;
}

INTERP_REGISTER_OP(LogicalDef<LogicalAnd>("logical_and"));
INTERP_REGISTER_OP(LogicalDef<LogicalOr>("logical_or"));
INTERP_REGISTER_OP(LogicalDef<LogicalXor>("logical_xor"));
INTERP_REGISTER_OP(LogicalNotDef());
INTERP_REGISTER_OP(BitwiseDef<BitwiseAnd>("bitwise_and"));
INTERP_REGISTER_OP(BitwiseDef<BitwiseOr>("bitwise_or"));
INTERP_REGISTER_OP(BitwiseDef<BitwiseXor>("bitwise_xor"));
INTERP_REGISTER_OP(BitwiseNotDef());

}  // namespace
}  // namespace interp
