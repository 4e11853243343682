// fsp_grad: X@GRAD = Out@GRAD Y / pixels and Y@GRAD = Out@GRAD^T X / pixels, image by image.
#include "kernels/product/fsp.h"
#include "kernels/product/product.h"
#include "kernels/util/gradient_shape.h"

namespace interp::nn {
namespace {

constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveFsp(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kFspX, kXGrad);
  ctx.ShareShape(kFspY, kYGrad);
  return absl::OkStatus();
}

// Out@GRAD, transposed for the second, times the other input.
template <typename T>
absl::Status Multiply(KernelContext& ctx, bool transposed, int other, int output) {
  Tensor* const to = ctx.optional_output(output);
  if (to == nullptr) return absl::OkStatus();
  const Shape& shape = to->shape;
  const Tensor& from = ctx.input(other);
  const int64_t pixels = shape[2] * shape[3];
  Product product = ProductOf(shape[1], pixels, from.shape[1]);
  product.trans_x = transposed;
  product.alpha = 1.0 / static_cast<double>(pixels);
  const int64_t images[] = {shape[0]};
  INTERP_RETURN_IF_ERROR(BroadcastBatch(images, images, product));
  return RunProduct<T>(ctx, product, ctx.input(kOutGrad).data<T>(), from.data<T>(),
                       /*y_constant=*/false, nullptr, to->mutable_data<T>());
}

template <typename T>
absl::Status FspGrad(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Multiply<T>(ctx, /*transposed=*/false, kFspY, kXGrad));
  return Multiply<T>(ctx, /*transposed=*/true, kFspX, kYGrad);
}

INTERP_REGISTER_OP(OpDef{
    .type = "fsp_grad",
    .inputs = {{"X"}, {"Y"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, FspGrad<float>}, {DType::kFloat64, FspGrad<double>}},
});

}  // namespace
}  // namespace interp::nn
