// fft_c2c: Out = the discrete Fourier transform of complex X along `axes`.
// fft_r2c: that of real X; with `onesided` the first half of the last axis, whose rest are
// conjugates. fft_c2r: the real signal whose spectrum has X as the first half of its last axis.
// Exponents are negative with `forward`; `normalization` says in which direction results are
// divided by the number of elements, or in both by its root.
#include <algorithm>
#include <complex>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/fft/fft_attrs.h"
#include "kernels/fft/half_spectrum.h"
#include "kernels/fft/transform.h"
#include "kernels/util/parallel_for.h"

namespace interp::fft {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

using Number = std::complex<double>;

// X in double, transformed along the axes.
template <typename T>
absl::StatusOr<Workspace> Transformed(KernelContext& ctx, absl::Span<const int> axes,
                                      bool forward) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(Workspace work,
                          ctx.workspace(static_cast<size_t>(x.numel()) * sizeof(Number)));
  Number* const data = work.data<Number>();
  const T* const from = x.data<T>();
  ParallelFor(ctx.num_threads(), x.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = Number(from[i]);
  });
  for (const int axis : axes) {
    INTERP_RETURN_IF_ERROR(TransformAxis(ctx, x.shape, axis, forward, data));
  }
  return work;
}

absl::Status InferSame(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(AxesOf(ctx.attrs<FftAttrs>(), ctx.input(kX).shape).status());
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status ComplexToComplex(KernelContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, x.shape));
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          Transformed<std::complex<T>>(ctx, axes, attrs.forward));
  const Number* const data = work.data<Number>();
  const double factor = FactorOf(attrs.scaling, SignalSize(x.shape, axes));
  std::complex<T>* const out = ctx.output(kOut).mutable_data<std::complex<T>>();
  ParallelFor(ctx.num_threads(), x.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = std::complex<T>(data[i] * factor);
  });
  return absl::OkStatus();
}

absl::Status InferRealToComplex(InferContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  Shape shape = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, shape));
  if (attrs.onesided) shape[axes.back()] = HalfLength(shape[axes.back()]);
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status RealToComplex(KernelContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, x.shape));
  INTERP_ASSIGN_OR_RETURN(const Workspace work, Transformed<T>(ctx, axes, attrs.forward));
  TakeHalf(ctx.num_threads(), LinesAlong(x.shape, axes.back()), LinesAlong(out.shape, axes.back()),
           work.data<Number>(), FactorOf(attrs.scaling, SignalSize(x.shape, axes)),
           out.mutable_data<std::complex<T>>());
  return absl::OkStatus();
}

absl::Status InferComplexToReal(InferContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  Shape shape = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, shape));
  int64_t& last = shape[axes.back()];
  last = attrs.last_dim_size > 0 ? attrs.last_dim_size : (last - 1) * 2;
  if (last < 1 || last > kMaxLength) {
    return InvalidArgument("the result has ", last, " elements along axis ", axes.back(),
                           ", expected 1 to ", kMaxLength, "; 'last_dim_size' is ",
                           attrs.last_dim_size);
  }
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status ComplexToReal(KernelContext& ctx) {
  const FftAttrs& attrs = ctx.attrs<FftAttrs>();
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(attrs, x.shape));
  const absl::Span<const int> outer(axes.data(), axes.size() - 1);
  INTERP_ASSIGN_OR_RETURN(const Workspace half,
                          Transformed<std::complex<T>>(ctx, outer, attrs.forward));
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(out.numel()) * sizeof(Number)));
  Number* const data = work.data<Number>();
  CompleteSpectrum(ctx.num_threads(), LinesAlong(x.shape, axes.back()),
                   LinesAlong(out.shape, axes.back()), half.data<Number>(), data);
  INTERP_RETURN_IF_ERROR(TransformAxis(ctx, out.shape, axes.back(), attrs.forward, data));
  const double factor = FactorOf(attrs.scaling, SignalSize(out.shape, axes));
  T* const to = out.mutable_data<T>();
  ParallelFor(ctx.num_threads(), out.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(data[i].real() * factor);
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fft_c2c",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FftAttrs, ReadFftAttrs>,
    .infer = InferSame,
    .kernels = {{DType::kComplex64, ComplexToComplex<float>},
                {DType::kComplex128, ComplexToComplex<double>}},
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});
INTERP_REGISTER_OP(OpDef{
    .type = "fft_r2c",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FftAttrs, ReadFftAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, ComplexDType(ctx.kernel())); },
    .infer = InferRealToComplex,
    .kernels = {{DType::kFloat32, RealToComplex<float>}, {DType::kFloat64, RealToComplex<double>}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});
INTERP_REGISTER_OP(OpDef{
    .type = "fft_c2r",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FftAttrs, ReadFftAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, RealDType(ctx.kernel())); },
    .infer = InferComplexToReal,
    .kernels = {{DType::kComplex64, ComplexToReal<float>},
                {DType::kComplex128, ComplexToReal<double>}},
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp::fft
