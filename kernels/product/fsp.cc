// fsp: of each image, the products of all pairs of channels of X and Y, as means over the pixels.
#include "kernels/product/fsp.h"

#include "kernels/product/product.h"

namespace interp::nn {
namespace {

constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveFsp(ctx));
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

template <typename T>
absl::Status Fsp(KernelContext& ctx) {
  const Shape& x = ctx.input(kFspX).shape;
  const int64_t pixels = x[2] * x[3];
  Product product = ProductOf(x[1], ctx.input(kFspY).shape[1], pixels);
  product.trans_y = true;
  product.alpha = 1.0 / static_cast<double>(pixels);
  const int64_t images[] = {x[0]};
  INTERP_RETURN_IF_ERROR(BroadcastBatch(images, images, product));
  return RunProduct<T>(ctx, product, ctx.input(kFspX).data<T>(), ctx.input(kFspY).data<T>(),
                       /*y_constant=*/false, nullptr, ctx.output(kOut).mutable_data<T>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "fsp",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, Fsp<float>}, {DType::kFloat64, Fsp<double>}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

}  // namespace
}  // namespace interp::nn
