// pow_grad: X@GRAD = Out@GRAD factor X^(factor - 1), 0 for the factor 0.
#include <cmath>

#include "kernels/math/pow.h"
#include "kernels/math/unary_grad.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp {
namespace {

constexpr int kFactorTensor = 3;

absl::Status InferPowGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckFactor(ctx, kFactorTensor));
  return InferUnaryGrad(ctx, unary_grad::kX);
}

struct SquareGrad {
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * T{2} * x;
  }
};

struct CubeGrad {
  template <typename T>
  T operator()(T x, T grad) const {
    return grad * T{3} * (x * x);
  }
};

template <typename T>
struct PowerGrad {
  T factor;
  T operator()(T x, T grad) const {
    return factor == 0 ? T{0} : grad * factor * std::pow(x, factor - T{1});
  }
};

template <typename T>
absl::Status PowGrad(KernelContext& ctx) {
  const T factor = FactorOf<T>(ctx, kFactorTensor);
  if (factor == 2) {
    MapUnaryGrad<T>(ctx, unary_grad::kX, SquareGrad());
  } else if (factor == 3) {
    MapUnaryGrad<T>(ctx, unary_grad::kX, CubeGrad());
  } else {
    MapUnaryGrad<T>(ctx, unary_grad::kX, PowerGrad<T>{factor});
  }
  return absl::OkStatus();
}

OpDef PowGradDef() {
  OpDef def =
      PlainUnaryGradDef("pow_grad", unary_grad::kX,
                        {{DType::kFloat32, PowGrad<float>}, {DType::kFloat64, PowGrad<double>}});
  def.inputs.push_back({"FactorTensor", kOptional});
  def.parse = ParseAttrs<PowAttrs, PowAttrs::Read>;
  def.infer = InferPowGrad;
  return def;
}

constexpr SecondGradient kPowSecond = {
    .type = "pow_double_grad",
    .values = {{{"X", "X"}, {"grad_out", "Out@GRAD"}, {"FactorTensor", "FactorTensor"}}},
    .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
    .results = {{{"X@GRAD", "X"}, {"grad_out@GRAD", "Out@GRAD"}}}};

INTERP_REGISTER_OP(WithSecond<kPowSecond>(PowGradDef()));

}  // namespace
}  // namespace interp
