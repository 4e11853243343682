// fft_c2c: Out = the discrete Fourier transform of complex X along `axes`.
// fft_r2c: that of real X; with `onesided` the first half of the last axis, whose rest are
// conjugates. fft_c2r: the real signal whose spectrum has X as the first half of its last axis.
// Exponents are negative with `forward`; `normalization` says in which direction results are
// divided by the number of elements, or in both by its root.
#include <complex>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/fft/fft_attrs.h"
#include "kernels/fft/half_to_real.h"
#include "kernels/fft/transform.h"

namespace interp::fft {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <typename T>
using Number = std::complex<T>;

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
  const double factor = FactorOf(attrs.scaling, SignalSize(x.shape, axes));
  return Transform<T>(ctx, x.shape, axes, {attrs.forward, factor}, x.data<Number<T>>(),
                      ctx.output(kOut).mutable_data<Number<T>>());
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
  const int last = axes.back();
  const double factor = FactorOf(attrs.scaling, SignalSize(x.shape, axes));
  Number<T>* const data = out.mutable_data<Number<T>>();
  // Of several axes, the others are transformed for the first half alone.
  const bool half = attrs.onesided || axes.size() > 1;
  INTERP_RETURN_IF_ERROR(TransformReal<T>(ctx, x.shape, last, out.shape, half,
                                          {attrs.forward, factor}, x.data<T>(), data));
  if (axes.size() == 1) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(TransformFirst<T>(ctx, out.shape, OuterAxes(axes), {attrs.forward}, last,
                                           HalfLength(x.shape[last]), data));
  if (!attrs.onesided) CompleteConjugates(ctx.num_threads(), out.shape, axes, data);
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
  const double factor = FactorOf(attrs.scaling, SignalSize(out.shape, axes));
  return HalfToReal<T>(ctx, x, axes, {attrs.forward, factor}, out);
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
