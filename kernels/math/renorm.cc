// renorm: Out = X, where each slice along dimension `axis` whose p-norm is more than `max_norm` is
// multiplied by max_norm / norm.
// renorm_grad: of such a slice, factor Out@GRAD plus the derivative of the factor.
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr double kTiny = 1e-7;  // Paddle adds it to the norm

struct RenormAttrs {
  float p = 2;
  int64_t axis = 0;
  float max_norm = 0;
};

RenormAttrs ReadRenormAttrs(AttrReader& reader) {
  const RenormAttrs attrs = {reader.Float("p", 2.0f), reader.Int("axis", 0),
                             reader.Float("max_norm", 0.0f)};
  if (!(attrs.p > 0)) reader.Fail(absl::StrCat("attribute 'p' is ", attrs.p, ", expected above 0"));
  return attrs;
}

// The elements of slice s: s * inner + i for every block of `slices` slices.
struct Slices {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;

  template <typename Body>
  void ForEach(int64_t slice, const Body& body) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t begin = (o * count + slice) * inner;
      for (int64_t i = begin; i < begin + inner; ++i) body(i);
    }
  }
};

absl::StatusOr<Slices> SlicesOf(const OpContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(ctx.attrs<RenormAttrs>().axis, x.rank()));
  return Slices{x.numel(0, axis), x[axis], x.numel(axis + 1, x.rank())};
}

template <typename T>
double NormOf(const Slices& slices, int64_t slice, double p, const T* x) {
  double sum = 0;
  slices.ForEach(slice,
                 [&](int64_t i) { sum += std::pow(std::abs(static_cast<double>(x[i])), p); });
  return std::pow(sum, 1 / p);
}

absl::Status InferRenorm(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(SlicesOf(ctx).status());
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status Renorm(KernelContext& ctx) {
  const RenormAttrs& attrs = ctx.attrs<RenormAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Slices slices, SlicesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  if (ctx.input(kX).numel() == 0) return absl::OkStatus();
  for (int64_t s = 0; s < slices.count; ++s) {
    const double norm = NormOf(slices, s, attrs.p, x);
    const double factor = norm > attrs.max_norm ? attrs.max_norm / (norm + kTiny) : 1;
    slices.ForEach(s, [=](int64_t i) { out[i] = static_cast<T>(x[i] * factor); });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "renorm",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RenormAttrs, ReadRenormAttrs>,
    .infer = InferRenorm,
    .kernels = {{DType::kFloat32, Renorm<float>}, {DType::kFloat64, Renorm<double>}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferRenormGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kX).shape));
  INTERP_RETURN_IF_ERROR(SlicesOf(ctx).status());
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status RenormGrad(KernelContext& ctx) {
  const RenormAttrs& attrs = ctx.attrs<RenormAttrs>();
  const double p = attrs.p;
  INTERP_ASSIGN_OR_RETURN(const Slices slices, SlicesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = ctx.output(kXGrad).mutable_data<T>();
  if (ctx.input(kX).numel() == 0) return absl::OkStatus();
  for (int64_t s = 0; s < slices.count; ++s) {
    const double norm = NormOf(slices, s, p, x);
    if (!(norm > attrs.max_norm)) {
      slices.ForEach(s, [=](int64_t i) { out[i] = grad[i]; });
      continue;
    }
    const double factor = attrs.max_norm / (norm + kTiny);
    double sum = 0;
    slices.ForEach(s, [&](int64_t i) { sum += static_cast<double>(x[i]) * grad[i]; });
    // d factor / d norm times d norm / d x[i] = sign(x) |x|^(p-1) norm^(1-p).
    const double slope = -factor / (norm + kTiny) * sum * std::pow(norm, 1 - p);
    slices.ForEach(s, [=](int64_t i) {
      const double value = x[i];
      const double power = value == 0 ? 0 : std::copysign(std::pow(std::abs(value), p - 1), value);
      out[i] = static_cast<T>(factor * grad[i] + slope * power);
    });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "renorm_grad",
    .inputs = {{"X"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<RenormAttrs, ReadRenormAttrs>,
    .infer = InferRenormGrad,
    .kernels = {{DType::kFloat32, RenormGrad<float>}, {DType::kFloat64, RenormGrad<double>}},
});

}  // namespace
}  // namespace interp
