// batch_fc: a product for each slot, Out[s] = Input[s] W[s] + Bias[s], of Input [S,B,I], W [S,I,O]
// and Bias [S,O]. batch_fc_grad: its derivatives.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/product/product.h"
#include "kernels/util/gradient_shape.h"

namespace interp::nn {
namespace {

constexpr int kInput = 0;
constexpr int kW = 1;
constexpr int kBias = 2;
constexpr int kOut = 0;
constexpr int kOutGrad = 3;

// The shape of Out. InvalidArgument unless the inputs fit each other.
absl::StatusOr<Shape> Resolve(const OpContext& ctx) {
  const Shape& x = ctx.input(kInput).shape;
  const Shape& w = ctx.input(kW).shape;
  const Shape& bias = ctx.input(kBias).shape;
  if (x.rank() == 3 && w.rank() == 3 && w[0] == x[0] && w[1] == x[2] && bias == Shape{w[0], w[2]}) {
    return Shape{x[0], x[1], w[2]};
  }
  return InvalidArgument("inputs 'Input', 'W' and 'Bias' have shapes ", ToString(x), ", ",
                         ToString(w), " and ", ToString(bias),
                         ", expected [S,B,I], [S,I,O] and [S,O]");
}

// op(x[s]) op(y[s]) for all of `slots`, with m x k and k x n elements.
struct SlotProduct {
  int64_t slots = 0;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool trans_x = false;
  bool trans_y = false;

  template <typename T>
  absl::Status Run(KernelContext& ctx, const T* x, const T* y, T* out) const {
    Product product = ProductOf(m, n, k);
    product.trans_x = trans_x;
    product.trans_y = trans_y;
    INTERP_RETURN_IF_ERROR(BroadcastBatch({slots}, {slots}, product));
    return RunProduct<T>(ctx, product, x, y, /*y_constant=*/false, /*bias=*/nullptr, out);
  }
};

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, Resolve(ctx));
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

template <typename T>
absl::Status BatchFc(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  const int64_t rows = out.shape[1];
  const int64_t width = out.shape[2];
  T* values = out.mutable_data<T>();
  const SlotProduct product = {
      .slots = out.shape[0], .m = rows, .n = width, .k = ctx.input(kW).shape[1]};
  INTERP_RETURN_IF_ERROR(
      product.Run<T>(ctx, ctx.input(kInput).data<T>(), ctx.input(kW).data<T>(), values));
  const T* bias = ctx.input(kBias).data<T>();
  for (int64_t slot = 0; slot < out.shape[0]; ++slot, bias += width) {
    for (int64_t row = 0; row < rows; ++row, values += width) {
      for (int64_t i = 0; i < width; ++i) values[i] += bias[i];
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "batch_fc",
    .inputs = {{"Input"}, {"W"}, {"Bias"}},
    .outputs = {{"Out"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, BatchFc<float>}, {DType::kFloat64, BatchFc<double>}},
    .gradient = {.inputs = {"Input", "W", "Bias", "Out@GRAD"},
                 .outputs = {"Input@GRAD", "W@GRAD", "Bias@GRAD"}},
});

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, Resolve(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  for (const int slot : {kInput, kW, kBias}) ctx.ShareShape(slot, slot);
  return absl::OkStatus();
}

template <typename T>
void SumRows(const Shape& shape, const T* grad, T* sums) {
  for (int64_t slot = 0; slot < shape[0]; ++slot, sums += shape[2]) {
    std::fill_n(sums, shape[2], T{0});
    for (int64_t row = 0; row < shape[1]; ++row, grad += shape[2]) {
      for (int64_t i = 0; i < shape[2]; ++i) sums[i] += grad[i];
    }
  }
}

template <typename T>
absl::Status BatchFcGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, Resolve(ctx));
  const int64_t depth = ctx.input(kW).shape[1];
  const T* const grad = ctx.input(kOutGrad).data<T>();
  if (Tensor* const x_grad = ctx.optional_output(kInput)) {
    const SlotProduct product = {
        .slots = shape[0], .m = shape[1], .n = depth, .k = shape[2], .trans_y = true};
    INTERP_RETURN_IF_ERROR(
        product.Run<T>(ctx, grad, ctx.input(kW).data<T>(), x_grad->mutable_data<T>()));
  }
  if (Tensor* const w_grad = ctx.optional_output(kW)) {
    const SlotProduct product = {
        .slots = shape[0], .m = depth, .n = shape[2], .k = shape[1], .trans_x = true};
    INTERP_RETURN_IF_ERROR(
        product.Run<T>(ctx, ctx.input(kInput).data<T>(), grad, w_grad->mutable_data<T>()));
  }
  if (Tensor* const bias_grad = ctx.optional_output(kBias)) {
    SumRows(shape, grad, bias_grad->mutable_data<T>());
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "batch_fc_grad",
    .inputs = {{"Input"}, {"W"}, {"Bias", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"Input@GRAD", kOptional}, {"W@GRAD", kOptional}, {"Bias@GRAD", kOptional}},
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, BatchFcGrad<float>}, {DType::kFloat64, BatchFcGrad<double>}},
});

}  // namespace
}  // namespace interp::nn
