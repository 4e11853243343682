// pow: Out = X^factor. The tensor FactorTensor wins over the attribute; for integers the factor is
// truncated first.
#include "kernels/math/pow.h"

#include <cmath>

#include "kernels/math/unary.h"

namespace interp {
namespace {

using unary::kOut;
using unary::kX;
constexpr int kFactorTensor = 1;

absl::Status InferPow(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckFactor(ctx, kFactorTensor));
  return InferUnary(ctx);
}

struct Square {
  template <typename T>
  T operator()(T x) const {
    return x * x;
  }
};

// As gelu is written by tanh.
struct Cube {
  template <typename T>
  T operator()(T x) const {
    return x * x * x;
  }
};

template <typename T>
struct Power {
  T factor;
  T operator()(T x) const {
    if constexpr (kIsInteger<T>) {
      return IntegerPower(x, factor);
    } else {
      return std::pow(x, factor);
    }
  }
};

template <typename T>
absl::Status Pow(KernelContext& ctx) {
  using C = ComputeType<T>;
  const C factor = FactorOf<T>(ctx, kFactorTensor);
  if (!kIsInteger<T> && factor == 2) {
    MapUnary<T, T>(ctx, Square());
  } else if (!kIsInteger<T> && factor == 3) {
    MapUnary<T, T>(ctx, Cube());
  } else {
    MapUnary<T, T>(ctx, Power<C>{factor});
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "pow",
    .inputs = {{"X"}, {"FactorTensor", kOptional}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PowAttrs, PowAttrs::Read>,
    .infer = InferPow,
    .kernels = {{DType::kFloat32, Pow<float>},
                {DType::kFloat64, Pow<double>},
                {DType::kFloat16, Pow<float16>},
                {DType::kInt32, Pow<int32_t>},
                {DType::kInt64, Pow<int64_t>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "FactorTensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
