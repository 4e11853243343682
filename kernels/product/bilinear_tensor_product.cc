// bilinear_tensor_product: Out[b, k] = x^T W y + Bias[k] for row x of X, row y of Y and matrix k of
// Weight [size, x, y]. bilinear_tensor_product_grad: its gradients.
#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/zeroed_output.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kWeight = 2;
constexpr int kBias = 3;
constexpr int kOut = 0;

struct Sizes {
  int64_t batch = 0;
  int64_t size = 0;
  int64_t x = 0;
  int64_t y = 0;

  // Calls body(index of Out, of X, of Y, of Weight) for every product.
  template <typename Body>
  void ForEach(const Body& body) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t k = 0; k < size; ++k) {
        for (int64_t i = 0; i < x; ++i) {
          for (int64_t j = 0; j < y; ++j) {
            body(b * size + k, b * x + i, b * y + j, (k * x + i) * y + j);
          }
        }
      }
    }
  }
};

absl::StatusOr<Sizes> SizesOf(const OpContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  const Shape& weight = ctx.input(kWeight).shape;
  if (x.rank() != 2 || y.rank() != 2 || x[0] != y[0] || weight.rank() != 3 || weight[1] != x[1] ||
      weight[2] != y[1]) {
    return InvalidArgument("'X', 'Y' and 'Weight' have shapes ", ToString(x), ", ", ToString(y),
                           " and ", ToString(weight), ", expected [b,m], [b,n] and [size,m,n]");
  }
  return Sizes{x[0], weight[0], x[1], y[1]};
}

absl::Status InferBilinear(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(ctx));
  const Tensor* const bias = ctx.optional_input(kBias);
  if (bias != nullptr && bias->numel() != sizes.size) {
    return InvalidArgument("input 'Bias' has shape ", ToString(bias->shape), ", expected [1,",
                           sizes.size, "]");
  }
  ctx.SetShape(kOut, {sizes.batch, sizes.size});
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status Bilinear(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  const T* const weight = ctx.input(kWeight).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const Tensor* const bias = ctx.optional_input(kBias);
  for (int64_t i = 0; i < sizes.batch * sizes.size; ++i) {
    out[i] = bias == nullptr ? T{0} : bias->data<T>()[i % sizes.size];
  }
  sizes.ForEach(
      [=](int64_t at, int64_t i, int64_t j, int64_t w) { out[at] += x[i] * weight[w] * y[j]; });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "bilinear_tensor_product",
    .inputs = {{"X"}, {"Y"}, {"Weight"}, {"Bias", kOptional}},
    .outputs = {{"Out"}},
    .infer = InferBilinear,
    .kernels = {{DType::kFloat32, Bilinear<float>}, {DType::kFloat64, Bilinear<double>}},
    .gradient = {.inputs = {"X", "Y", "Weight", "Out@GRAD"},
                 .outputs = {"X@GRAD", "Y@GRAD", "Weight@GRAD", "Bias@GRAD"}},
});

constexpr int kOutGrad = 3;
constexpr int kBiasGrad = 3;

absl::Status InferBilinearGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(ctx));
  const Shape expected = {sizes.batch, sizes.size};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", expected));
  for (const int slot : {kX, kY, kWeight}) ctx.SetShape(slot, ctx.input(slot).shape);
  ctx.SetShape(kBiasGrad, {1, sizes.size});
  return absl::OkStatus();
}

template <typename T>
absl::Status BilinearGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  const T* const weight = ctx.input(kWeight).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ZeroedOutput<T>(ctx, kX);
  T* const y_grad = ZeroedOutput<T>(ctx, kY);
  T* const weight_grad = ZeroedOutput<T>(ctx, kWeight);
  T* const bias_grad = ZeroedOutput<T>(ctx, kBiasGrad);
  sizes.ForEach([=](int64_t at, int64_t i, int64_t j, int64_t w) {
    if (x_grad != nullptr) x_grad[i] += grad[at] * weight[w] * y[j];
    if (y_grad != nullptr) y_grad[j] += grad[at] * weight[w] * x[i];
    if (weight_grad != nullptr) weight_grad[w] += grad[at] * x[i] * y[j];
  });
  for (int64_t i = 0; i < sizes.batch * sizes.size && bias_grad != nullptr; ++i) {
    bias_grad[i % sizes.size] += grad[i];
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "bilinear_tensor_product_grad",
    .inputs = {{"X"}, {"Y"}, {"Weight"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional},
                {"Y@GRAD", kOptional},
                {"Weight@GRAD", kOptional},
                {"Bias@GRAD", kOptional}},
    .infer = InferBilinearGrad,
    .kernels = {{DType::kFloat32, BilinearGrad<float>}, {DType::kFloat64, BilinearGrad<double>}},
});

}  // namespace
}  // namespace interp::nn
