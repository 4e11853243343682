// mul_grad, matmul_grad, matmul_v2_grad, bmm_grad and addmm_grad.
#include <vector>

#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/row.h"
#include "kernels/linalg/addmm.h"
#include "kernels/product/matmul_grad.h"

namespace interp::cuda {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

// Sums of products, of the dims of the batch in which matrices of `out` are `steps` = 0 apart.
// Those of 16 bits are taken in float32 and rounded at the end.
absl::Status SumProducts(KernelContext& ctx, const nn::Product& product,
                         const nn::MatrixSteps& steps, const ProductOperands& operands,
                         Tensor& out) {
  const bool half = SizeOf(out.dtype) == 2;
  const DType wide = half ? DType::kFloat32 : out.dtype;
  const int64_t size = product.m * product.n;
  INTERP_ASSIGN_OR_RETURN(
      const Workspace all,
      ctx.workspace(static_cast<size_t>(product.count() * size) * SizeOf(wide)));
  INTERP_RETURN_IF_ERROR(RunProduct(ctx, product, out.dtype, wide,
                                    {.x = operands.x, .y = operands.y, .out = all.data()}));
  std::vector<int64_t> dims(product.batch.begin(), product.batch.end());
  dims.push_back(size);
  uint32_t reduced = 0;
  for (int d = 0; d < product.batch.rank(); ++d) {
    if (steps[d] == 0) reduced |= 1u << d;
  }
  if (!half) {
    return Reduce(wide, ReduceOp::kSum, all.data(), dims, reduced, operands.out, WorkspaceOf(ctx),
                  StreamOf(ctx));
  }
  INTERP_ASSIGN_OR_RETURN(const Workspace sums,
                          ctx.workspace(static_cast<size_t>(out.numel()) * SizeOf(wide)));
  INTERP_RETURN_IF_ERROR(Reduce(wide, ReduceOp::kSum, all.data(), dims, reduced, sums.data(),
                                WorkspaceOf(ctx), StreamOf(ctx)));
  return Cast(wide, out.dtype, sums.data(), operands.out, out.numel(), StreamOf(ctx));
}

// Computes `product` of left and right into `out`, whose matrices are `steps` apart.
absl::Status MultiplyInto(KernelContext& ctx, const nn::Product& product,
                          const nn::MatrixSteps& steps, const Tensor& left, const Tensor& right,
                          Tensor& out) {
  if (out.numel() == 0) return absl::OkStatus();
  const ProductOperands operands = {
      .x = left.raw_data(), .y = right.raw_data(), .out = out.mutable_raw_data()};
  if (!nn::SharesMatrices(product.batch, steps)) {
    return RunProduct(ctx, product, out.dtype, out.dtype, operands);
  }
  return SumProducts(ctx, product, steps, operands, out);
}

absl::Status MatmulGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  const Tensor& grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const nn::ResolvedProduct resolved,
                          nn::ResolveMatmul(ctx.attrs<nn::MatmulAttrs>(), x.shape, y.shape));
  nn::Product p = resolved.product;
  nn::FoldBatch(p);  // one Y for all: its gradient is one product over all rows
  if (Tensor* out = ctx.optional_output(kXGrad)) {
    INTERP_RETURN_IF_ERROR(MultiplyInto(ctx, nn::GradientProductOfX(p), p.x_steps,
                                        p.trans_x ? y : grad, p.trans_x ? grad : y, *out));
  }
  if (Tensor* out = ctx.optional_output(kYGrad)) {
    INTERP_RETURN_IF_ERROR(MultiplyInto(ctx, nn::GradientProductOfY(p), p.y_steps,
                                        p.trans_y ? grad : x, p.trans_y ? x : grad, *out));
  }
  return absl::OkStatus();
}

constexpr std::initializer_list<DType> kGradients = {DType::kFloat32, DType::kFloat64,
                                                     DType::kFloat16, DType::kBFloat16};
INTERP_REGISTER_KERNELS("mul_grad", RowsFor(kGradients, MatmulGrad));
INTERP_REGISTER_KERNELS("matmul_grad", RowsFor(kGradients, MatmulGrad));
INTERP_REGISTER_KERNELS("matmul_v2_grad", RowsFor(kGradients, MatmulGrad));
INTERP_REGISTER_KERNELS("bmm_grad", RowsFor(kGradients, MatmulGrad));

// Of addmm_grad.
constexpr int kInput = 0;
constexpr int kLeft = 1;
constexpr int kRight = 2;
constexpr int kAddmmGrad = 3;

// beta times the sums of `grad` over the dims that Input is repeated in.
absl::Status InputGrad(const KernelContext& ctx, const Tensor& grad, Tensor& out) {
  const auto steps = linalg::AddmmInputSteps(ctx.input(kInput));
  uint32_t reduced = 0;
  for (int d = 0; d < 2; ++d) {
    if (steps[d] == 0 && grad.shape[d] != 1) reduced |= 1u << d;
  }
  const int64_t size = out.numel();
  const void* sums = grad.raw_data();
  if (reduced != 0) {
    INTERP_RETURN_IF_ERROR(Reduce(out.dtype, ReduceOp::kSum, sums, grad.shape.dims(), reduced,
                                  out.mutable_raw_data(), WorkspaceOf(ctx), StreamOf(ctx)));
    sums = out.raw_data();
  }
  const ElementwiseStep scale = {.op = ElementwiseOp::kScale,
                                 .a = ctx.attrs<linalg::AddmmAttrs>().beta};
  return Elementwise(out.dtype, {scale}, {{sums, {size}}}, {size}, out.mutable_raw_data(),
                     StreamOf(ctx));
}

absl::Status AddmmGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kLeft);
  const Tensor& y = ctx.input(kRight);
  const Tensor& grad = ctx.input(kAddmmGrad);
  nn::Product p = nn::ProductOf(x.shape[0], y.shape[1], x.shape[1]);
  p.alpha = ctx.attrs<linalg::AddmmAttrs>().alpha;
  if (Tensor* out = ctx.optional_output(kLeft)) {
    INTERP_RETURN_IF_ERROR(MultiplyInto(ctx, nn::GradientProductOfX(p), p.x_steps, grad, y, *out));
  }
  if (Tensor* out = ctx.optional_output(kRight)) {
    INTERP_RETURN_IF_ERROR(MultiplyInto(ctx, nn::GradientProductOfY(p), p.y_steps, x, grad, *out));
  }
  Tensor* const input_grad = ctx.optional_output(kInput);
  return input_grad == nullptr ? absl::OkStatus() : InputGrad(ctx, grad, *input_grad);
}

INTERP_REGISTER_KERNELS("addmm_grad", RowsFor({DType::kFloat32, DType::kFloat64}, AddmmGrad));

}  // namespace
}  // namespace interp::cuda
