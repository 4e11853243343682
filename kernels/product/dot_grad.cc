// dot_grad: X@GRAD = Out@GRAD Y and Y@GRAD = Out@GRAD X, each Out@GRAD for the whole last dim. Of
// complex numbers Y and X are conjugates.
#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  if (x.rank() < 1 || !(x == y)) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           " must have the same shape of at least one dim");
  }
  if (ctx.input(kOutGrad).numel() != x.numel(0, x.rank() - 1)) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(ctx.input(kOutGrad).shape),
                           ", expected ", x.numel(0, x.rank() - 1), " elements");
  }
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kY, kYGrad);
  return absl::OkStatus();
}

template <typename T>
void ScaleRows(const Tensor& factors, const Tensor& rows, Tensor* out) {
  if (out == nullptr) return;
  const int64_t length = rows.shape.back();
  const T* from = rows.data<T>();
  T* to = out->mutable_data<T>();
  for (int64_t i = 0; i < factors.numel(); ++i, from += length, to += length) {
    const T factor = factors.data<T>()[i];
    for (int64_t j = 0; j < length; ++j) to[j] = factor * Conjugate(from[j]);
  }
}

template <typename T>
absl::Status DotGrad(KernelContext& ctx) {
  ScaleRows<T>(ctx.input(kOutGrad), ctx.input(kY), ctx.optional_output(kXGrad));
  ScaleRows<T>(ctx.input(kOutGrad), ctx.input(kX), ctx.optional_output(kYGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "dot_grad",
    .inputs = {{"X"}, {"Y"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, DotGrad<float>},
                {DType::kFloat64, DotGrad<double>},
                {DType::kComplex64, DotGrad<std::complex<float>>},
                {DType::kComplex128, DotGrad<std::complex<double>>}},
});

}  // namespace
}  // namespace interp::nn
