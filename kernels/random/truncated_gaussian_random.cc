// truncated_gaussian_random: Out = normal numbers of the attributes `mean` and `std`, those drawn
// again that are two or more deviations from the mean. Each is the quantile of an even number,
// which gives the same distribution and needs no second try.
#include <limits>

#include "kernels/random/draw.h"
#include "kernels/util/fill_shape.h"

namespace interp::random {
namespace {

constexpr int kOut = 0;

struct TruncatedAttrs {
  DType dtype = DType::kFloat32;
  IntList shape;
  float mean = 0;
  float deviation = 1;
  int32_t seed = 0;
};

TruncatedAttrs ReadTruncated(AttrReader& reader) {
  return {.dtype = reader.Type("dtype", DType::kFloat32),
          .shape = ReadIntListAttr(reader, "shape"),
          .mean = reader.Float("mean", 0.0F),
          .deviation = reader.Float("std", 1.0F),
          .seed = reader.Int("seed", 0)};
}

DType TruncatedDType(const DTypeContext& ctx) { return ctx.attrs<TruncatedAttrs>().dtype; }

absl::Status Infer(InferContext& ctx) {
  return SetFillShape(ctx, kOut, ctx.attrs<TruncatedAttrs>().shape);
}

// P(N <= -2) and P(-2 < N <= 2).
constexpr double kBelow = 0.022750131948179207;
constexpr double kWithin = 0.9544997361036416;

template <typename T>
T Quantile(const TruncatedAttrs& attrs, double unit) {
  const double normal = NormalQuantile(kBelow + kWithin * unit);
  return static_cast<T>(normal * attrs.deviation + attrs.mean);
}

template <typename T>
void DrawSeeded(const TruncatedAttrs& attrs, T* out, int64_t n) {
  std::mt19937_64 engine = SeededEngine(attrs.seed);
  std::uniform_real_distribution<T> uniform(std::numeric_limits<float>::min(), 1.0F);
  for (int64_t i = 0; i < n; ++i) out[i] = Quantile<T>(attrs, uniform(engine));
}

template <typename T>
absl::Status Truncated(KernelContext& ctx) {
  const TruncatedAttrs& attrs = ctx.attrs<TruncatedAttrs>();
  Tensor& tensor = ctx.output(kOut);
  T* const out = tensor.mutable_data<T>();
  if (attrs.seed != 0) {
    DrawSeeded<T>(attrs, out, tensor.numel());
  } else if constexpr (sizeof(T) == sizeof(float)) {
    ForEachBits32(ctx, tensor.numel(), [=, &attrs](int64_t i, uint32_t bits) {
      out[i] = Quantile<T>(attrs, OpenUnit(bits));
    });
  } else {
    ForEachBits64(ctx, tensor.numel(), [=, &attrs](int64_t i, uint64_t bits) {
      out[i] = Quantile<T>(attrs, OpenUnit(bits));
    });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "truncated_gaussian_random",
    .inputs = {},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<TruncatedAttrs, ReadTruncated>,
    .kernel_dtype = TruncatedDType,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Truncated<float>}, {DType::kFloat64, Truncated<double>}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
