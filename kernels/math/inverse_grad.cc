// inverse_grad: Input@GRAD = -Output^T Output@GRAD Output^T, for each matrix.
#include "core/op_def.h"
#include "kernels/product/product.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kOutput = 0;
constexpr int kOutputGrad = 1;
constexpr int kInputGrad = 0;

absl::Status InferInverseGrad(InferContext& ctx) {
  const Shape& shape = ctx.input(kOutput).shape;
  if (shape.rank() < 2 || shape.back(1) != shape.back(2)) {
    return InvalidArgument("input 'Output' has shape ", ToString(shape),
                           ", expected square matrices");
  }
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutputGrad, "Output@GRAD", shape));
  ctx.SetShape(kInputGrad, ctx.input(kOutput).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status InverseGrad(KernelContext& ctx) {
  const Tensor& output = ctx.input(kOutput);
  if (output.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(output.size_bytes()));
  T* const right = work.data<T>();
  nn::Product product;
  product.m = product.n = product.k = output.shape.back();
  const absl::Span<const int64_t> batch(output.shape.begin(), output.shape.rank() - 2);
  INTERP_RETURN_IF_ERROR(nn::BroadcastBatch(batch, batch, product));
  nn::Product second = product;
  product.trans_y = true;
  second.trans_x = true;
  second.alpha = -1;
  const T* const inverse = output.data<T>();
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, ctx.input(kOutputGrad).data<T>(), inverse,
                                           /*y_constant=*/false, /*bias=*/nullptr, right));
  return nn::RunProduct<T>(ctx, second, inverse, right, /*y_constant=*/false, /*bias=*/nullptr,
                           ctx.output(kInputGrad).mutable_data<T>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "inverse_grad",
    .inputs = {{"Output"}, {"Output@GRAD"}},
    .outputs = {{"Input@GRAD"}},
    .infer = InferInverseGrad,
    .kernels = {{DType::kFloat32, InverseGrad<float>}, {DType::kFloat64, InverseGrad<double>}},
});

}  // namespace
}  // namespace interp
