// stft: Out[n, f, t] = element f of the spectrum of frame t of row n of X, the frame multiplied by
// Window; frames have `n_fft` elements and start `hop_length` apart. `normalized` divides by the
// root of n_fft, `onesided` leaves the first half of a spectrum.
// stft_grad: X@GRAD = the sum of the gradients of the frames, each at its place.
#include <cmath>
#include <complex>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/fft/transform.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/parallel_for.h"

namespace interp::fft {
namespace {

constexpr int kX = 0;
constexpr int kWindow = 1;
constexpr int kOut = 0;

struct StftAttrs {
  int64_t length = 0;
  int64_t hop = 0;
  bool normalized = false;
  bool onesided = true;
};

StftAttrs ReadStftAttrs(AttrReader& reader) {
  const StftAttrs attrs = {reader.Int("n_fft", 0), reader.Int("hop_length", 0),
                           reader.Bool("normalized", false), reader.Bool("onesided", true)};
  if (attrs.length < 1 || attrs.length > kMaxLength) {
    reader.Fail(
        absl::StrCat("attribute 'n_fft' is ", attrs.length, ", expected 1 to ", kMaxLength));
  }
  if (attrs.hop < 1) {
    reader.Fail(absl::StrCat("attribute 'hop_length' is ", attrs.hop, ", expected at least 1"));
  }
  return attrs;
}

// The shape of the frames, [rows, n_fft, frames].
absl::StatusOr<Shape> FramesOf(const OpContext& ctx) {
  const StftAttrs& attrs = ctx.attrs<StftAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const Shape& window = ctx.input(kWindow).shape;
  if (x.rank() != 2 || x[1] < attrs.length) {
    return InvalidArgument("input 'X' has shape ", ToString(x),
                           ", expected rows of at least 'n_fft' = ", attrs.length, " elements");
  }
  if (window != Shape{attrs.length}) {
    return InvalidArgument("input 'Window' has shape ", ToString(window), ", expected [",
                           attrs.length, "], as 'n_fft' says");
  }
  return Shape{x[0], attrs.length, 1 + (x[1] - attrs.length) / attrs.hop};
}

Shape SpectraOf(const StftAttrs& attrs, Shape frames) {
  if (attrs.onesided) frames[1] = HalfLength(frames[1]);
  return frames;
}

double FactorOf(const StftAttrs& attrs) {
  return attrs.normalized ? 1 / std::sqrt(static_cast<double>(attrs.length)) : 1;
}

absl::Status InferStft(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape frames, FramesOf(ctx));
  ctx.SetShape(kOut, SpectraOf(ctx.attrs<StftAttrs>(), frames));
  return absl::OkStatus();
}

// Calls body(row of X, frame, element of the frame, index among the frames).
template <typename Body>
void ForEachElement(const Shape& frames, const Body& body) {
  int64_t index = 0;
  for (int64_t row = 0; row < frames[0]; ++row) {
    for (int64_t i = 0; i < frames[1]; ++i) {
      for (int64_t frame = 0; frame < frames[2]; ++frame) body(row, frame, i, index++);
    }
  }
}

template <typename T>
absl::Status Stft(KernelContext& ctx) {
  const StftAttrs& attrs = ctx.attrs<StftAttrs>();
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const Shape frames, FramesOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(frames.numel()) * sizeof(T)));
  T* const data = work.data<T>();
  const T* const signal = x.data<T>();
  const T* const window = ctx.input(kWindow).data<T>();
  const int64_t length = x.shape[1];
  ForEachElement(frames, [&](int64_t row, int64_t frame, int64_t i, int64_t index) {
    data[index] = signal[row * length + frame * attrs.hop + i] * window[i];
  });
  return TransformReal<T>(ctx, frames, 1, out.shape, attrs.onesided,
                          {.forward = true, .factor = FactorOf(attrs)}, data,
                          out.mutable_data<std::complex<T>>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "stft",
    .inputs = {{"X"}, {"Window"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<StftAttrs, ReadStftAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, ComplexDType(ctx.kernel())); },
    .infer = InferStft,
    .kernels = {{DType::kFloat32, Stft<float>}, {DType::kFloat64, Stft<double>}},
    .gradient = {.inputs = {"X", "Window", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferStftGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape frames, FramesOf(ctx));
  const Shape expected = SpectraOf(ctx.attrs<StftAttrs>(), frames);
  const Tensor& grad = ctx.input(kOutGrad);
  if (grad.shape != expected || grad.dtype != ComplexDType(ctx.input(kX).dtype)) {
    return InvalidArgument("input 'Out@GRAD' is ", DescribeType(grad), ", expected ",
                           Name(ComplexDType(ctx.input(kX).dtype)), ToString(expected));
  }
  ctx.SetShape(kXGrad, ctx.input(kX).shape);
  return absl::OkStatus();
}

// The real parts of the frames that `spectra` are of.
template <typename T>
absl::Status FramesOfSpectra(const KernelContext& ctx, const Tensor& spectra, const Shape& frames,
                             T* out) {
  using Number = std::complex<T>;
  const StftAttrs& attrs = ctx.attrs<StftAttrs>();
  const double factor = FactorOf(attrs);
  if (attrs.onesided) {
    return TransformToReal<T>(ctx, spectra.shape, frames, 1, {false, factor, /*twin_factor=*/0.5},
                              spectra.data<Number>(), out);
  }
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(frames.numel()) * sizeof(Number)));
  Number* const data = work.data<Number>();
  INTERP_RETURN_IF_ERROR(
      Transform<T>(ctx, frames, {1}, {false, factor}, spectra.data<Number>(), data));
  for (int64_t i = 0; i < frames.numel(); ++i) out[i] = data[i].real();
  return absl::OkStatus();
}

template <typename T>
absl::Status StftGrad(KernelContext& ctx) {
  const StftAttrs& attrs = ctx.attrs<StftAttrs>();
  const Tensor& grad = ctx.input(kOutGrad);
  Tensor& x_grad = ctx.output(kXGrad);
  INTERP_ASSIGN_OR_RETURN(const Shape frames, FramesOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(frames.numel()) * sizeof(T)));
  T* const data = work.data<T>();
  INTERP_RETURN_IF_ERROR(FramesOfSpectra<T>(ctx, grad, frames, data));
  FillZero(ctx.num_threads(), x_grad);
  T* const sums = x_grad.mutable_data<T>();
  const T* const window = ctx.input(kWindow).data<T>();
  const int64_t length = x_grad.shape[1];
  ForEachElement(frames, [&](int64_t row, int64_t frame, int64_t i, int64_t index) {
    sums[row * length + frame * attrs.hop + i] += data[index] * window[i];
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "stft_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Window"}, {"Out@GRAD", kAnyDType}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<StftAttrs, ReadStftAttrs>,
    .infer = InferStftGrad,
    .kernels = {{DType::kFloat32, StftGrad<float>}, {DType::kFloat64, StftGrad<double>}},
});

}  // namespace
}  // namespace interp::fft
