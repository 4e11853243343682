// elementwise_heaviside: Out = 0 where X is negative, Y where it is 0, 1 where it is positive.
#include "kernels/math/binary_grad.h"

namespace interp {
namespace {

struct Heaviside {
  template <typename T>
  T operator()(T x, T y) const {
    return x == T{0} ? y : static_cast<T>(x > T{0});
  }
};

INTERP_REGISTER_OP(ArithmeticDef("elementwise_heaviside",
                                 BinaryKernels<Heaviside, float, double, int32_t, int64_t>(),
                                 BinaryGradient()));

struct HeavisideGrad {
  static constexpr Takes kX = Takes::kNothing;
  static constexpr Takes kY = Takes::kOther;
  template <typename T>
  static T X(T, T, T) {
    return T{0};
  }
  template <typename T>
  static T Y(T x, T, T grad) {
    return x == T{0} ? grad : T{0};
  }
};

OpDef HeavisideGradDef() {
  OpDef def = PlainBinaryGradDef("elementwise_heaviside_grad", /*values=*/true);
  def.kernels = {{DType::kFloat32, BinaryGrad<HeavisideGrad, float>},
                 {DType::kFloat64, BinaryGrad<HeavisideGrad, double>}};
  return def;
}

INTERP_REGISTER_OP(HeavisideGradDef());

}  // namespace
}  // namespace interp
