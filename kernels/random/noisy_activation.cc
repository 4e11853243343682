// gumbel_softmax: Out = softmax((X + noise) / temperature) along `axis`, with noise of the Gumbel
// distribution; with `hard` 1 at the largest element of each line, else 0.
// rrelu: Out = X Noise, where Noise is 1 for X >= 0 and else drawn evenly from [lower, upper); in
// test mode it is their mean. Their gradients. Programs that were saved for inference have lost
// Noise, which only the gradient reads.
#include <cmath>

#include "kernels/random/draw.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp::random {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct GumbelAttrs {
  float temperature = 1;
  bool hard = false;
  int64_t axis = -1;
};

GumbelAttrs ReadGumbelAttrs(AttrReader& reader) {
  const GumbelAttrs attrs = {reader.Float("temperature", 1.0f), reader.Bool("hard", false),
                             reader.Int("axis", -1)};
  if (!(attrs.temperature > 0)) {
    reader.Fail(
        absl::StrCat("attribute 'temperature' is ", attrs.temperature, ", expected above 0"));
  }
  return attrs;
}

absl::StatusOr<Lines> LinesOf(const OpContext& ctx, const Shape& shape) {
  if (shape.rank() == 0) return Lines{};
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(ctx.attrs<GumbelAttrs>().axis, shape.rank()));
  return LinesAlong(shape, axis);
}

absl::Status InferGumbel(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(LinesOf(ctx, ctx.input(kX).shape).status());
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// The softmax of a line in place; with `hard` the place of its largest element.
template <typename T>
void FinishLine(const Lines& lines, bool hard, T* line) {
  int64_t best = 0;
  for (int64_t i = 1; i < lines.length; ++i) {
    if (line[i * lines.inner] > line[best * lines.inner]) best = i;
  }
  const T largest = line[best * lines.inner];
  T sum = 0;
  for (int64_t i = 0; i < lines.length; ++i) {
    T& value = line[i * lines.inner];
    value = hard ? T(i == best) : std::exp(value - largest);
    sum += value;
  }
  for (int64_t i = 0; i < lines.length; ++i) line[i * lines.inner] /= sum;
}

template <typename T>
absl::Status Gumbel(KernelContext& ctx) {
  const GumbelAttrs& attrs = ctx.attrs<GumbelAttrs>();
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Lines lines, LinesOf(ctx, x.shape));
  const T* const from = x.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const T temperature = attrs.temperature;
  ForEachBits64(ctx, x.numel(), [=](int64_t i, uint64_t bits) {
    const double noise = -std::log(-std::log(OpenUnit(bits)));
    out[i] = (from[i] + static_cast<T>(noise)) / temperature;
  });
  ForEachLine(lines, LineTasks(lines, ctx.num_threads()), [&](int64_t, int64_t index) {
    FinishLine(lines, attrs.hard, out + lines.Start(index));
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "gumbel_softmax",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<GumbelAttrs, ReadGumbelAttrs>,
    .infer = InferGumbel,
    .kernels = {{DType::kFloat32, Gumbel<float>}, {DType::kFloat64, Gumbel<double>}},
    .random = true,
    .gradient = {.inputs = {"Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kGradOut = 0;
constexpr int kGumbelGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferGumbelGrad(InferContext& ctx) {
  const Shape& out = ctx.input(kGradOut).shape;
  INTERP_RETURN_IF_ERROR(LinesOf(ctx, out).status());
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kGumbelGrad, "Out@GRAD", out));
  ctx.ShareShape(kGradOut, kXGrad);
  return absl::OkStatus();
}

// That of the softmax alone, without the temperature, as Paddle has it.
template <typename T>
absl::Status GumbelGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Lines lines, LinesOf(ctx, ctx.input(kGradOut).shape));
  const T* const out = ctx.input(kGradOut).data<T>();
  const T* const grad = ctx.input(kGumbelGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ForEachLine(lines, LineTasks(lines, ctx.num_threads()), [&](int64_t, int64_t index) {
    const int64_t start = lines.Start(index);
    T sum = 0;
    for (int64_t i = 0; i < lines.length; ++i) {
      const int64_t at = start + i * lines.inner;
      sum += out[at] * grad[at];
    }
    for (int64_t i = 0; i < lines.length; ++i) {
      const int64_t at = start + i * lines.inner;
      x_grad[at] = out[at] * (grad[at] - sum);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "gumbel_softmax_grad",
    .inputs = {{"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<GumbelAttrs, ReadGumbelAttrs>,
    .infer = InferGumbelGrad,
    .kernels = {{DType::kFloat32, GumbelGrad<float>}, {DType::kFloat64, GumbelGrad<double>}},
});

// Of rrelu.
constexpr int kNoise = 1;

struct RReluAttrs {
  float lower = 0.125f;
  float upper = 1.0f / 3;
  bool is_test = false;
};

RReluAttrs ReadRReluAttrs(AttrReader& reader) {
  const RReluAttrs attrs = {reader.Float("lower", 0.125f), reader.Float("upper", 1.0f / 3),
                            reader.Bool("is_test", false)};
  if (!(attrs.lower >= 0 && attrs.lower <= attrs.upper && attrs.upper <= 1)) {
    reader.Fail(absl::StrCat("attributes 'lower' and 'upper' are ", attrs.lower, " and ",
                             attrs.upper, ", expected 0 <= lower <= upper <= 1"));
  }
  return attrs;
}

absl::Status InferRRelu(InferContext& ctx) {
  ctx.ShareShape(kX, kOut);
  ctx.ShareShape(kX, kNoise);
  return absl::OkStatus();
}

template <typename T>
absl::Status RRelu(KernelContext& ctx) {
  const RReluAttrs& attrs = ctx.attrs<RReluAttrs>();
  const Tensor& x = ctx.input(kX);
  const T* const from = x.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  Tensor* const noise_out = ctx.optional_output(kNoise);
  T* const noise = noise_out == nullptr ? nullptr : noise_out->mutable_data<T>();
  const auto put = [=](int64_t i, T slope) {
    const T factor = from[i] < 0 ? slope : T{1};
    if (noise != nullptr) noise[i] = factor;
    out[i] = from[i] * factor;
  };
  const T lower = attrs.lower;
  const T upper = attrs.upper;
  if (attrs.is_test) {
    const T mean = static_cast<T>((attrs.lower + attrs.upper) / 2);
    for (int64_t i = 0; i < x.numel(); ++i) put(i, mean);
    return absl::OkStatus();
  }
  ForEachBits64(ctx, x.numel(), [=](int64_t i, uint64_t bits) {
    put(i, lower + (upper - lower) * static_cast<T>(UnitDouble(bits)));
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rrelu",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"Noise", kOptional}},
    .parse = ParseAttrs<RReluAttrs, ReadRReluAttrs>,
    .infer = InferRRelu,
    .kernels = {{DType::kFloat32, RRelu<float>}, {DType::kFloat64, RRelu<double>}},
    .random = true,
    .gradient = {.inputs = {"X", "Noise", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kGradNoise = 1;
constexpr int kOutGrad = 2;

absl::Status InferRReluGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kGradNoise, "Noise", x));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", x));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status RReluGrad(KernelContext& ctx) {
  const T* const noise = ctx.input(kGradNoise).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = ctx.output(kXGrad).mutable_data<T>();
  for (int64_t i = 0; i < ctx.output(kXGrad).numel(); ++i) out[i] = noise[i] * grad[i];
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rrelu_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Noise"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<RReluAttrs, ReadRReluAttrs>,
    .infer = InferRReluGrad,
    .kernels = {{DType::kFloat32, RReluGrad<float>}, {DType::kFloat64, RReluGrad<double>}},
});

}  // namespace
}  // namespace interp::random
