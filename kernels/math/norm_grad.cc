// norm_grad: X@GRAD = (Out@GRAD - X sum(X Out@GRAD) / Norm^2) / Norm, with the sum along `axis`.
#include "kernels/math/norm_attrs.h"
#include "kernels/math/reduction_grad.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kNorm = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferNormGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Shape norm, NormShape(ctx.attrs<NormAttrs>(), x));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kNorm, "Norm", norm));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", x));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// Elements of X and Out@GRAD, as a source of RunReduce, and the sum of their products.
template <typename T>
struct Pairs {
  const T* x;
  const T* grad;
  Pairs operator+(int64_t n) const { return {x + n, grad + n}; }
  double operator[](int64_t i) const { return double{x[i]} * double{grad[i]}; }
};
struct SumOf {
  using Acc = double;
  Acc Init() const { return 0; }
  Acc Map(double x, int64_t) const { return x; }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename T>
absl::Status NormGrad(KernelContext& ctx) {
  const Tensor& x_tensor = ctx.input(kX);
  const Tensor& norm_tensor = ctx.input(kNorm);
  Tensor& x_grad_tensor = ctx.output(kXGrad);
  const T* const x = x_tensor.data<T>();
  const T* const norm = norm_tensor.data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = x_grad_tensor.mutable_data<T>();
  const auto lines = static_cast<size_t>(norm_tensor.numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(lines * sizeof(PerOutput<T>)));
  auto* const factors = work.data<PerOutput<T>>();
  const int axis = *NormalizeAxis(ctx.attrs<NormAttrs>().axis, x_tensor.shape.rank());
  RunReduce(PlanReduce(x_tensor, DimSet().set(axis), norm_tensor), ctx.num_threads(),
            Pairs<T>{x, grad}, factors, SumOf(), [norm](double sum, int64_t at) {
              const double inverse = 1.0 / double{norm[at]};
              return PerOutput<T>{static_cast<T>(inverse),
                                  static_cast<T>(sum * inverse * inverse * inverse)};
            });
  const Strides strides = BroadcastStrides(norm_tensor, x_tensor.shape.rank(), kTrailingAxis);
  ForEachPiece(PlanBroadcast(StridesOf(x_grad_tensor), strides, x_grad_tensor), ctx.num_threads(),
               static_cast<const PerOutput<T>*>(factors),
               [=](int64_t begin, int64_t n, const PerOutput<T>* values) {
                 for (int64_t i = 0; i < n; ++i) {
                   x_grad[begin + i] = grad[begin + i] * values[i].a - x[begin + i] * values[i].b;
                 }
               });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "norm_grad",
    .inputs = {{"X"}, {"Norm"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<NormAttrs, NormAttrs::Read>,
    .infer = InferNormGrad,
    .kernels = {{DType::kFloat32, NormGrad<float>}, {DType::kFloat64, NormGrad<double>}},
});

}  // namespace
}  // namespace interp
