// dot: Out[...] = sum over the last dim of X * Y. X and Y have equal shapes.
#include <complex>

#include "kernels/util/flops.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  if (x.rank() < 1 || !(x == y)) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           " must have the same shape of at least one dim");
  }
  ctx.SetShape(kOut, Shape(x.dims().subspan(0, x.rank() - 1)));
  return absl::OkStatus();
}

// Sum is wide enough that integer sums wrap instead of overflowing.
template <typename T, typename Sum = T>
absl::Status Dot(KernelContext& ctx) {
  const T* x = ctx.input(kX).data<T>();
  const T* y = ctx.input(kY).data<T>();
  Tensor& out = ctx.output(kOut);
  const int64_t length = ctx.input(kX).shape.back();
  for (int64_t i = 0; i < out.numel(); ++i, x += length, y += length) {
    Sum sum = 0;
    for (int64_t j = 0; j < length; ++j) sum += static_cast<Sum>(x[j]) * static_cast<Sum>(y[j]);
    out.mutable_data<T>()[i] = static_cast<T>(sum);
  }
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  return ToFlops(2.0 * static_cast<double>(ctx.input(kX).numel()));
}

INTERP_REGISTER_OP(OpDef{
    .type = "dot",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, Dot<float>},
                {DType::kFloat64, Dot<double>},
                {DType::kInt32, Dot<int32_t, uint32_t>},
                {DType::kInt64, Dot<int64_t, uint64_t>},
                {DType::kComplex64, Dot<std::complex<float>>},
                {DType::kComplex128, Dot<std::complex<double>>}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::nn
