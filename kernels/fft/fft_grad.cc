// fft_c2c_grad: X@GRAD = Out@GRAD transformed in the other direction, with the same factor.
// fft_r2c_grad: the real part of that; what a half spectrum lacks is 0.
// fft_c2r_grad: the first half of that; elements that stand for two count twice.
#include <complex>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/fft/fft_attrs.h"
#include "kernels/fft/half_to_real.h"
#include "kernels/fft/transform.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::fft {
namespace {

template <typename T>
using Number = std::complex<T>;

constexpr int kXGrad = 0;
constexpr int kOutGrad = 0;

absl::Status InferSame(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(AxesOf(ctx.attrs<FftAttrs>(), ctx.input(kOutGrad).shape).status());
  ctx.ShareShape(kOutGrad, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status ComplexToComplexGrad(KernelContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Tensor& grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, grad.shape));
  const double factor = FactorOf(attrs.scaling, SignalSize(grad.shape, axes));
  return Transform<T>(ctx, grad.shape, axes, {!attrs.forward, factor}, grad.data<Number<T>>(),
                      ctx.output(kXGrad).mutable_data<Number<T>>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "fft_c2c_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<FftAttrs, ReadFftAttrs>,
    .infer = InferSame,
    .kernels = {{DType::kComplex64, ComplexToComplexGrad<float>},
                {DType::kComplex128, ComplexToComplexGrad<double>}},
});

// Of fft_r2c.
constexpr int kX = 0;
constexpr int kSpectrumGrad = 1;

absl::Status InferRealGrad(InferContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Tensor& grad = ctx.input(kSpectrumGrad);
  Shape shape = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, shape));
  if (attrs.onesided) shape[axes.back()] = HalfLength(shape[axes.back()]);
  if (grad.shape != shape || grad.dtype != ComplexDType(ctx.input(kX).dtype)) {
    return InvalidArgument("input 'Out@GRAD' is ", DescribeType(grad), ", expected ",
                           Name(ComplexDType(ctx.input(kX).dtype)), ToString(shape));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// The real part of a signal is that of its spectrum and the conjugate of that, halved: elements of
// a half spectrum, but for those that are their own twins, count one half.
template <typename T>
absl::Status RealToComplexGrad(KernelContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Shape& shape = ctx.input(kX).shape;
  const Tensor& grad = ctx.input(kSpectrumGrad);
  Tensor& out = ctx.output(kXGrad);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, shape));
  const double factor = FactorOf(attrs.scaling, SignalSize(shape, axes));
  if (attrs.onesided) {
    return HalfToReal<T>(ctx, grad, axes, {!attrs.forward, factor, /*twin_factor=*/0.5}, out);
  }
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(shape.numel()) * sizeof(Number<T>)));
  Number<T>* const data = work.data<Number<T>>();
  INTERP_RETURN_IF_ERROR(
      Transform<T>(ctx, shape, axes, {!attrs.forward, factor}, grad.data<Number<T>>(), data));
  T* const to = out.mutable_data<T>();
  ParallelFor(ctx.num_threads(), shape.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = data[i].real();
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fft_r2c_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD", kAnyDType}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<FftAttrs, ReadFftAttrs>,
    .infer = InferRealGrad,
    .kernels = {{DType::kFloat32, RealToComplexGrad<float>},
                {DType::kFloat64, RealToComplexGrad<double>}},
});

absl::Status InferHalfGrad(InferContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  Shape shape = ctx.input(kOutGrad).shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, shape));
  if (attrs.last_dim_size > 0 && attrs.last_dim_size != shape[axes.back()]) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(shape),
                           ", but 'last_dim_size' is ", attrs.last_dim_size);
  }
  shape[axes.back()] = HalfLength(shape[axes.back()]);
  ctx.SetShape(kXGrad, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status ComplexToRealGrad(KernelContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Tensor& grad = ctx.input(kOutGrad);
  Tensor& out = ctx.output(kXGrad);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, grad.shape));
  const double factor = FactorOf(attrs.scaling, SignalSize(grad.shape, axes));
  Number<T>* const to = out.mutable_data<Number<T>>();
  INTERP_RETURN_IF_ERROR(TransformReal<T>(ctx, grad.shape, axes.back(), out.shape, /*half=*/true,
                                          {!attrs.forward, factor, /*twin_factor=*/2},
                                          grad.data<T>(), to));
  return TransformFirst<T>(ctx, out.shape, OuterAxes(axes), {.forward = !attrs.forward},
                           axes.back(), out.shape[axes.back()], to);
}

INTERP_REGISTER_OP(OpDef{
    .type = "fft_c2r_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<FftAttrs, ReadFftAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kXGrad, ComplexDType(ctx.kernel())); },
    .infer = InferHalfGrad,
    .kernels = {{DType::kFloat32, ComplexToRealGrad<float>},
                {DType::kFloat64, ComplexToRealGrad<double>}},
});

}  // namespace
}  // namespace interp::fft
