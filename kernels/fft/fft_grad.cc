// fft_c2c_grad: X@GRAD = Out@GRAD transformed in the other direction, with the same factor.
// fft_r2c_grad: the real part of that; what a half spectrum lacks is 0.
// fft_c2r_grad: the first half of that; elements that stand for two count twice.
#include <complex>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/fft/fft_attrs.h"
#include "kernels/fft/half_spectrum.h"
#include "kernels/fft/transform.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::fft {
namespace {

using Number = std::complex<double>;
constexpr int kXGrad = 0;

template <typename T>
void Widen(int num_threads, const T* from, int64_t n, Number* to) {
  ParallelFor(num_threads, n, kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = Number(from[i]);
  });
}

absl::Status TransformBack(KernelContext& ctx, const Shape& shape, absl::Span<const int> axes,
                           Number* data) {
  for (const int axis : axes) {
    INTERP_RETURN_IF_ERROR(TransformAxis(ctx, shape, axis, !ctx.attrs<FftAttrs>().forward, data));
  }
  return absl::OkStatus();
}

absl::StatusOr<Workspace> Numbers(const KernelContext& ctx, int64_t n) {
  return ctx.workspace(static_cast<size_t>(n) * sizeof(Number));
}

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
  INTERP_ASSIGN_OR_RETURN(const Workspace work, Numbers(ctx, grad.numel()));
  Number* const data = work.data<Number>();
  Widen(ctx.num_threads(), grad.data<std::complex<T>>(), grad.numel(), data);
  INTERP_RETURN_IF_ERROR(TransformBack(ctx, grad.shape, axes, data));
  const double factor = FactorOf(attrs.scaling, SignalSize(grad.shape, axes));
  std::complex<T>* const out = ctx.output(kXGrad).mutable_data<std::complex<T>>();
  for (int64_t i = 0; i < grad.numel(); ++i) out[i] = std::complex<T>(data[i] * factor);
  return absl::OkStatus();
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

template <typename T>
absl::Status RealToComplexGrad(KernelContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Shape& shape = ctx.input(kX).shape;
  const Tensor& grad = ctx.input(kSpectrumGrad);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, shape));
  INTERP_ASSIGN_OR_RETURN(const Workspace work, Numbers(ctx, shape.numel()));
  Number* const data = work.data<Number>();
  const Lines half = LinesAlong(grad.shape, axes.back());
  const Lines full = LinesAlong(shape, axes.back());
  const std::complex<T>* const from = grad.data<std::complex<T>>();
  ForEachLine(full, LineTasks(full, ctx.num_threads()), [&](int64_t, int64_t index) {
    Number* const to = data + full.Start(index);
    const std::complex<T>* const line = from + half.Start(index);
    for (int64_t i = 0; i < full.length; ++i) {
      to[i * full.inner] = i < half.length ? Number(line[i * half.inner]) : Number(0);
    }
  });
  INTERP_RETURN_IF_ERROR(TransformBack(ctx, shape, axes, data));
  const double factor = FactorOf(attrs.scaling, SignalSize(shape, axes));
  T* const out = ctx.output(kXGrad).mutable_data<T>();
  for (int64_t i = 0; i < shape.numel(); ++i) out[i] = static_cast<T>(data[i].real() * factor);
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
  INTERP_ASSIGN_OR_RETURN(const Workspace work, Numbers(ctx, grad.numel()));
  Number* const data = work.data<Number>();
  Widen(ctx.num_threads(), grad.data<T>(), grad.numel(), data);
  INTERP_RETURN_IF_ERROR(TransformBack(ctx, grad.shape, axes, data));
  const Lines full = LinesAlong(grad.shape, axes.back());
  const Lines half = LinesAlong(out.shape, axes.back());
  std::complex<T>* const to = out.mutable_data<std::complex<T>>();
  TakeHalf(ctx.num_threads(), full, half, data,
           FactorOf(attrs.scaling, SignalSize(grad.shape, axes)), to);
  const int64_t twice = full.length - half.length;
  ForEachLine(half, LineTasks(half, ctx.num_threads()), [&](int64_t, int64_t index) {
    std::complex<T>* const line = to + half.Start(index);
    for (int64_t i = 1; i <= twice; ++i) line[i * half.inner] *= T{2};
  });
  return absl::OkStatus();
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
