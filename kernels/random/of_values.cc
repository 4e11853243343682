// exponential: Out = numbers of the exponential distribution with rate `lambda`, in the shape of X.
// uniform_random_inplace: the same with another distribution.
// poisson: Out[i] = a number of the Poisson distribution with mean X[i].
// dirichlet: each line of Out along the last dimension is a point of the Dirichlet distribution
// whose parameters are that of Alpha. Gradients of numbers that do not depend on X are 0.
#include <algorithm>
#include <cmath>

#include "kernels/random/draw.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/infer_like.h"

namespace interp::random {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct RateAttrs {
  float lambda = 1;
};

RateAttrs ReadRateAttrs(AttrReader& reader) {
  const RateAttrs attrs = {reader.Float("lambda", 1.0f)};
  if (!(attrs.lambda > 0)) {
    reader.Fail(absl::StrCat("attribute 'lambda' is ", attrs.lambda, ", expected above 0"));
  }
  return attrs;
}

template <typename T>
absl::Status Exponential(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  T* const to = out.mutable_data<T>();
  const double rate = ctx.attrs<RateAttrs>().lambda;
  ForEachBits64(ctx, out.numel(), [=](int64_t i, uint64_t bits) {
    to[i] = static_cast<T>(-std::log(OpenUnit(bits)) / rate);
  });
  return absl::OkStatus();
}

// As Paddle writes it: zeros in the shape of the gradient.
absl::Status MakeZeroGradient(GradientMaker& maker) {
  if (!maker.Wants("X")) return absl::OkStatus();
  Op& fill = maker.Add("fill_any_like");
  AddInput(fill, "X", maker.OutputGradients("Out"));
  AddOutput(fill, "Out", maker.InputGradients("X"));
  SetAttr(fill, "value", 0.0f);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "exponential",
    .inputs = {{"X", kNoNeedBuffer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RateAttrs, ReadRateAttrs>,
    .infer = InferLike<kX, kOut>,
    .kernels = {{DType::kFloat32, Exponential<float>}, {DType::kFloat64, Exponential<double>}},
    .random = true,
    .gradient = {.make = MakeZeroGradient},
});

struct UniformAttrs {
  float min = -1;
  float max = 1;
  int32_t seed = 0;
  int64_t diag_num = 0;
  int64_t diag_step = 0;
  float diag_val = 1;
};

UniformAttrs ReadUniformAttrs(AttrReader& reader) {
  return {reader.Float("min", -1.0f), reader.Float("max", 1.0f),  reader.Int("seed", 0),
          reader.Int("diag_num", 0),  reader.Int("diag_step", 0), reader.Float("diag_val", 1.0f)};
}

template <typename T>
absl::Status Uniform(KernelContext& ctx) {
  const UniformAttrs& attrs = ctx.attrs<UniformAttrs>();
  Tensor& tensor = ctx.output(kOut);
  T* const out = tensor.mutable_data<T>();
  const int64_t n = tensor.numel();
  if (attrs.seed != 0) {
    std::mt19937_64 engine = SeededEngine(attrs.seed);
    std::uniform_real_distribution<T> uniform(attrs.min, attrs.max);
    for (int64_t i = 0; i < n; ++i) out[i] = uniform(engine);
  } else {
    const double min = attrs.min;
    const double range = attrs.max - min;
    ForEachBits64(ctx, n, [=](int64_t i, uint64_t bits) {
      out[i] = static_cast<T>(min + range * UnitDouble(bits));
    });
  }
  const int64_t stride = attrs.diag_step + 1;
  if (attrs.diag_num > 0 && (stride < 1 || n <= (attrs.diag_num - 1) * stride)) {
    return InvalidArgument("'diag_num' ", attrs.diag_num, " and 'diag_step' ", attrs.diag_step,
                           " lead outside of ", n, " elements");
  }
  for (int64_t i = 0; i < attrs.diag_num; ++i) out[i * stride] = static_cast<T>(attrs.diag_val);
  return absl::OkStatus();
}

constexpr int kOutGrad = 0;
constexpr int kXGrad = 0;

absl::Status ZeroGrad(KernelContext& ctx) {
  FillZero(ctx.num_threads(), ctx.output(kXGrad));
  return absl::OkStatus();
}

OpDef ZeroGradDef(absl::string_view type, absl::string_view out_grad = "Out@GRAD",
                  absl::string_view x_grad = "X@GRAD") {
  return OpDef{
      .type = type,
      .inputs = {{out_grad, kNoNeedBuffer}},
      .outputs = {{x_grad}},
      .infer = [](InferContext& ctx) -> absl::Status {
        ctx.ShareShape(kOutGrad, kXGrad);
        return absl::OkStatus();
      },
      .kernels = {{DType::kFloat32, ZeroGrad}, {DType::kFloat64, ZeroGrad}},
  };
}

INTERP_REGISTER_OP(OpDef{
    .type = "uniform_random_inplace",
    .inputs = {{"X", kNoNeedBuffer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<UniformAttrs, ReadUniformAttrs>,
    .infer = InferLike<kX, kOut>,
    .kernels = {{DType::kFloat32, Uniform<float>}, {DType::kFloat64, Uniform<double>}},
    .random = true,
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});
INTERP_REGISTER_OP(ZeroGradDef("uniform_random_inplace_grad"));
INTERP_REGISTER_OP(ZeroGradDef("gaussian_inplace_grad", "out@GRAD", "x@GRAD"));

// Means beyond this have a standard deviation that doubles do not resolve.
constexpr double kLargestMean = 0x1p52;

// Every element has an engine of its own, since it takes any number of words.
template <typename T>
absl::Status Poisson(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const T* const means = x.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const RandomStream stream = ctx.random();
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (!(means[i] >= 0 && means[i] <= kLargestMean)) {
      return InvalidArgument("element ", i, " of 'X' is ", means[i], ", expected a mean of 0 to ",
                             kLargestMean);
    }
    out[i] = 0;
    if (means[i] == 0) continue;
    std::mt19937_64 engine(BitsOf(stream, i));
    std::poisson_distribution<int64_t> poisson(means[i]);
    out[i] = static_cast<T>(poisson(engine));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "poisson",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferLike<kX, kOut>,
    .kernels = {{DType::kFloat32, Poisson<float>}, {DType::kFloat64, Poisson<double>}},
    .random = true,
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});
INTERP_REGISTER_OP(ZeroGradDef("poisson_grad"));

absl::Status InferDirichlet(InferContext& ctx) {
  const Shape& alpha = ctx.input(kX).shape;
  if (alpha.rank() == 0 || alpha.back() == 0) {
    return InvalidArgument("input 'Alpha' has shape ", ToString(alpha),
                           ", expected parameters in the last dimension");
  }
  return InferLike<kX, kOut>(ctx);
}

// Numbers of gamma distributions, divided by their sum.
template <typename T>
absl::Status Dirichlet(KernelContext& ctx) {
  const Tensor& alpha = ctx.input(kX);
  const T* const parameters = alpha.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const RandomStream stream = ctx.random();
  const int64_t n = alpha.shape.back();
  for (int64_t i = 0; i < alpha.numel(); ++i) {
    const double parameter = static_cast<double>(parameters[i]);
    if (!(parameter > 0 && std::isfinite(parameter))) {
      return InvalidArgument("element ", i, " of 'Alpha' is ", parameter, ", expected above 0");
    }
    std::mt19937_64 engine(BitsOf(stream, i));
    std::gamma_distribution<double> gamma(parameter);
    out[i] = static_cast<T>(std::max(gamma(engine), 1e-30));
  }
  for (int64_t line = 0; line < alpha.numel(); line += n) {
    double sum = 0;
    for (int64_t i = line; i < line + n; ++i) sum += static_cast<double>(out[i]);
    for (int64_t i = line; i < line + n; ++i) out[i] = static_cast<T>(out[i] / sum);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "dirichlet",
    .inputs = {{"Alpha"}},
    .outputs = {{"Out"}},
    .infer = InferDirichlet,
    .kernels = {{DType::kFloat32, Dirichlet<float>}, {DType::kFloat64, Dirichlet<double>}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
