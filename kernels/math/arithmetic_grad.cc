// Gradients of elementwise_add, _sub, _mul, _div, _max, _min, _fmax, _fmin and _pow. Of equal
// operands, max and min give the gradient to Y, fmax and fmin to X; where one is NaN, max and min
// give it to neither. All that is as in Paddle.
#include <cmath>

#include "kernels/math/binary_grad.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp {
namespace {

struct AddGrad {
  static constexpr Takes kX = Takes::kNothing;
  static constexpr Takes kY = Takes::kNothing;
  template <typename T>
  static T X(T, T, T grad) {
    return grad;
  }
  template <typename T>
  static T Y(T, T, T grad) {
    return grad;
  }
};

struct SubGrad : AddGrad {
  template <typename T>
  static T Y(T, T, T grad) {
    return kIsInteger<T> ? WrapSub(T{0}, grad) : -grad;
  }
};

struct MulGrad {
  static constexpr Takes kX = Takes::kOther;
  static constexpr Takes kY = Takes::kOther;
  template <typename T>
  static T X(T, T y, T grad) {
    return WrapMul(grad, Conjugate(y));
  }
  template <typename T>
  static T Y(T x, T, T grad) {
    return WrapMul(grad, Conjugate(x));
  }
};

// Whole numbers have whole quotients, 0 by 0.
struct DivGrad {
  static constexpr Takes kX = Takes::kOther;
  static constexpr Takes kY = Takes::kBoth;
  template <typename T>
  static T X(T, T y, T grad) {
    if constexpr (kIsInteger<T>) return Quotient(grad, y);
    return grad / Conjugate(y);
  }
  template <typename T>
  static T Y(T x, T y, T grad) {
    if constexpr (kIsInteger<T>) {
      return Quotient(WrapMul(WrapSub(T{0}, grad), Quotient(x, y)), y);
    }
    return -grad * Conjugate(x / y) / Conjugate(y);
  }

 private:
  template <typename T>
  static T Quotient(T x, T y) {
    return y == 0 ? T{0} : y == T(-1) ? WrapSub(T{0}, x) : static_cast<T>(x / y);
  }
};

// What chooses operands by `Chooses::X` and `Chooses::Y`: the gradient goes to the chosen one.
template <typename Chooses>
struct ChoiceGrad {
  static constexpr Takes kX = Takes::kBoth;
  static constexpr Takes kY = Takes::kBoth;
  template <typename T>
  static T X(T x, T y, T grad) {
    return Chooses::X(x, y) ? grad : T{0};
  }
  template <typename T>
  static T Y(T x, T y, T grad) {
    return Chooses::Y(x, y) ? grad : T{0};
  }
};

struct Larger {
  template <typename T>
  static bool X(T x, T y) {
    return x > y;
  }
  template <typename T>
  static bool Y(T x, T y) {
    return x <= y;
  }
};
struct Smaller {
  template <typename T>
  static bool X(T x, T y) {
    return x < y;
  }
  template <typename T>
  static bool Y(T x, T y) {
    return x >= y;
  }
};
struct LargerNumber {
  template <typename T>
  static bool X(T x, T y) {
    return x >= y || y != y;
  }
  template <typename T>
  static bool Y(T x, T y) {
    return !X(x, y);
  }
};
struct SmallerNumber {
  template <typename T>
  static bool X(T x, T y) {
    return x <= y || y != y;
  }
  template <typename T>
  static bool Y(T x, T y) {
    return !X(x, y);
  }
};

// A factor of 0 wins over an infinite one.
struct PowGrad {
  static constexpr Takes kX = Takes::kBoth;
  static constexpr Takes kY = Takes::kBoth;
  template <typename T>
  static T X(T x, T y, T grad) {
    return y == 0 ? T{0} : grad * y * std::pow(x, y - T{1});
  }
  template <typename T>
  static T Y(T x, T y, T grad) {
    return x == 0 && y > 0 ? T{0} : grad * std::log(x) * std::pow(x, y);
  }
};

OpDef PowGradDef() {
  OpDef def = BinaryGradDef<PowGrad>("elementwise_pow_grad");
  def.precision = PrecisionRule::kFull;
  return def;
}

OpDef SubGradDef() {
  OpDef def = ComplexBinaryGradDef<SubGrad>("elementwise_sub_grad");
  def.infer = binary_grad::InferWithLodOfX;
  return def;
}

constexpr SecondGradient SecondOfSum(absl::string_view type) {
  return {.type = type,
          .values = {{{"Y", "Y"}, {"DOut", "Out@GRAD"}}},
          .incoming = {{{"DDX", "X@GRAD"}, {"DDY", "Y@GRAD"}}},
          .results = {{{"DDOut", "Out@GRAD"}}}};
}
constexpr SecondGradient kAddSecond = SecondOfSum("elementwise_add_grad_grad");
constexpr SecondGradient kSubSecond = SecondOfSum("elementwise_sub_grad_grad");
constexpr SecondGradient kMulSecond = SecondOfTwo("elementwise_mul_grad_grad");
constexpr SecondGradient kDivSecond = {
    .type = "elementwise_div_grad_grad",
    .values = {{{"Y", "Y"}, {"Out", "Out"}, {"DX", "X@GRAD"}}},
    .incoming = {{{"DDX", "X@GRAD"}, {"DDY", "Y@GRAD"}}},
    .results = {{{"Y@GRAD", "Y"}, {"DOut", "Out"}, {"DDOut", "Out@GRAD"}}}};

INTERP_REGISTER_OP(WithSecond<kAddSecond>(ComplexBinaryGradDef<AddGrad>("elementwise_add_grad")));
INTERP_REGISTER_OP(WithSecond<kSubSecond>(SubGradDef()));
INTERP_REGISTER_OP(WithSecond<kMulSecond>(ComplexBinaryGradDef<MulGrad>("elementwise_mul_grad")));
INTERP_REGISTER_OP(WithSecond<kDivSecond>(ComplexBinaryGradDef<DivGrad>("elementwise_div_grad")));
INTERP_REGISTER_OP(NumberGradDef<ChoiceGrad<Larger>>("elementwise_max_grad"));
INTERP_REGISTER_OP(NumberGradDef<ChoiceGrad<Smaller>>("elementwise_min_grad"));
INTERP_REGISTER_OP(BinaryGradDef<ChoiceGrad<LargerNumber>>("elementwise_fmax_grad"));
INTERP_REGISTER_OP(BinaryGradDef<ChoiceGrad<SmallerNumber>>("elementwise_fmin_grad"));
INTERP_REGISTER_OP(PowGradDef());

}  // namespace
}  // namespace interp
