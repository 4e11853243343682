// pow: Out = X^factor. The tensor FactorTensor wins over the attribute; for integers the factor is
// truncated first.
#include <cmath>

#include "kernels/math/unary.h"

namespace interp {
namespace {

using unary::kOut;
using unary::kX;
constexpr int kFactorTensor = 1;

struct PowAttrs {
  float factor;
};

PowAttrs ReadPowAttrs(AttrReader& attrs) { return {attrs.Float("factor", 1.0f)}; }

absl::Status InferPow(InferContext& ctx) {
  const Tensor* factor = ctx.optional_input(kFactorTensor);
  if (factor != nullptr && factor->numel() != 1) {
    return InvalidArgument("input 'FactorTensor' is ", DescribeType(*factor),
                           ", expected one element");
  }
  return InferUnary(ctx);
}

struct Square {
  template <typename T>
  T operator()(T x) const {
    return x * x;
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
  const Tensor* tensor = ctx.optional_input(kFactorTensor);
  const C factor = tensor != nullptr ? static_cast<C>(*tensor->data<T>())
                                     : Convert<C>(ctx.attrs<PowAttrs>().factor);
  if (!kIsInteger<T> && factor == 2) {
    MapUnary<T, T>(ctx, Square());
  } else {
    MapUnary<T, T>(ctx, Power<C>{factor});
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "pow",
    .inputs = {{"X"}, {"FactorTensor", kOptional}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PowAttrs, ReadPowAttrs>,
    .infer = InferPow,
    .kernels = {{DType::kFloat32, Pow<float>},
                {DType::kFloat64, Pow<double>},
                {DType::kFloat16, Pow<float16>},
                {DType::kInt32, Pow<int32_t>},
                {DType::kInt64, Pow<int64_t>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
});

}  // namespace
}  // namespace interp
