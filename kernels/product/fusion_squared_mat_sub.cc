// fusion_squared_mat_sub: ((X Y)^2 - X^2 Y^2) scalar, squares element by element: the second-order
// term of factorisation machines, as Paddle's inference passes fuse it.
#include "core/op_def.h"
#include "kernels/product/product.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kSquaredX = 0;
constexpr int kSquaredY = 1;
constexpr int kSquaredXY = 2;
constexpr int kOut = 3;

struct SquaredAttrs {
  float scalar = 1;
};

SquaredAttrs ReadAttrs(AttrReader& reader) { return {reader.Float("scalar", 1)}; }

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  if (x.rank() != 2 || y.rank() != 2 || x[1] != y[0]) {
    return InvalidArgument("input 'X' has shape ", ToString(x), " and 'Y' ", ToString(y),
                           ", expected [M,K] and [K,N]");
  }
  ctx.SetShape(kSquaredX, x);
  ctx.SetShape(kSquaredY, y);
  ctx.SetShape(kSquaredXY, {x[0], y[1]});
  ctx.SetShape(kOut, {x[0], y[1]});
  return absl::OkStatus();
}

template <typename T>
void Square(const T* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] * from[i];
}

template <typename T>
absl::Status SquaredMatSub(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  T* const squared_x = ctx.output(kSquaredX).mutable_data<T>();
  T* const squared_y = ctx.output(kSquaredY).mutable_data<T>();
  T* const squared = ctx.output(kSquaredXY).mutable_data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  Product product = ProductOf(x.shape[0], y.shape[1], x.shape[1]);
  Square(x.data<T>(), x.numel(), squared_x);
  Square(y.data<T>(), y.numel(), squared_y);
  INTERP_RETURN_IF_ERROR(RunProduct<T>(ctx, product, x.data<T>(), y.data<T>(),
                                       /*y_constant=*/false, nullptr, squared));
  INTERP_RETURN_IF_ERROR(
      RunProduct<T>(ctx, product, squared_x, squared_y, /*y_constant=*/false, nullptr, out));
  const T scalar = static_cast<T>(ctx.attrs<SquaredAttrs>().scalar);
  for (int64_t i = 0; i < product.m * product.n; ++i) {
    squared[i] *= squared[i];
    out[i] = (squared[i] - out[i]) * scalar;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fusion_squared_mat_sub",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"SquaredX"}, {"SquaredY"}, {"SquaredXY"}, {"Out"}},
    .parse = ParseAttrs<SquaredAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, SquaredMatSub<float>}, {DType::kFloat64, SquaredMatSub<double>}},
});

}  // namespace
}  // namespace interp::nn
