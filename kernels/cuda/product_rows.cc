// mul, matmul, matmul_v2, bmm, fc, fused_matmul and addmm.
#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/fused_activation.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/strided_copy.h"
#include "kernels/linalg/addmm.h"
#include "kernels/product/matmul.h"

namespace interp::cuda {
namespace {

constexpr std::initializer_list<DType> kProducts = {DType::kFloat32, DType::kFloat64,
                                                    DType::kFloat16, DType::kBFloat16};

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kBias = 2;  // fc and fused_matmul
constexpr int kOut = 0;

absl::Status Multiply(KernelContext& ctx, const Tensor* bias) {
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const nn::ResolvedProduct resolved,
                          nn::ResolveMatmul(ctx.attrs<nn::MatmulAttrs>(), x.shape, y.shape));
  return RunProduct(ctx, resolved.product, out.dtype, out.dtype,
                    {.x = x.raw_data(),
                     .y = y.raw_data(),
                     .bias = bias == nullptr ? nullptr : bias->raw_data(),
                     .out = out.mutable_raw_data()});
}
absl::Status Matmul(KernelContext& ctx) { return Multiply(ctx, nullptr); }
absl::Status MatmulWithBias(KernelContext& ctx) { return Multiply(ctx, ctx.optional_input(kBias)); }

bool TakesFused(const void* attrs) {
  return TakesActivation(static_cast<const nn::MatmulAttrs*>(attrs)->activation);
}

INTERP_REGISTER_KERNELS("mul", RowsFor(kProducts, Matmul));
INTERP_REGISTER_KERNELS("matmul", RowsFor(kProducts, Matmul));
INTERP_REGISTER_KERNELS("matmul_v2", RowsFor(kProducts, Matmul));
INTERP_REGISTER_KERNELS("bmm", RowsFor(kProducts, Matmul));
INTERP_REGISTER_KERNELS("fc", RowsFor(kFloats, MatmulWithBias, TakesFused));
INTERP_REGISTER_KERNELS("fused_matmul", RowsFor(kFloats, MatmulWithBias, TakesFused));

// Input lies in the result before the product is added.
absl::Status Addmm(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<linalg::AddmmAttrs>();
  const Tensor& input = ctx.input(0);
  const Tensor& x = ctx.input(1);
  const Tensor& y = ctx.input(2);
  Tensor& out = ctx.output(kOut);
  const auto from = linalg::AddmmInputSteps(input);
  const int64_t to[] = {out.shape[1], 1};
  INTERP_RETURN_IF_ERROR(StridedCopy(static_cast<int>(SizeOf(out.dtype)), out.shape.dims(),
                                     {input.raw_data(), from}, {out.mutable_raw_data(), to},
                                     StreamOf(ctx)));
  nn::Product product = nn::ProductOf(x.shape[0], y.shape[1], x.shape[1]);
  product.alpha = attrs.alpha;
  return RunProduct(ctx, product, out.dtype, out.dtype,
                    {.x = x.raw_data(), .y = y.raw_data(), .out = out.mutable_raw_data()},
                    attrs.beta);
}

INTERP_REGISTER_KERNELS("addmm", RowsFor({DType::kFloat32, DType::kFloat64}, Addmm));

}  // namespace
}  // namespace interp::cuda
