// gaussian_random, gaussian_random_batch_size_like: Out = normal numbers of the attributes `mean`
// and `std`. gaussian_inplace: the same in the shape and dtype of X.
#include "kernels/random/draw.h"
#include "kernels/random/random_attrs.h"
#include "kernels/random/shape_inputs.h"

namespace interp::random {
namespace {

constexpr int kOut = 0;

GaussianAttrs ReadGaussian(AttrReader& reader) {
  return {.dtype = reader.Type("dtype", DType::kFloat32),
          .like = ReadBatchSizeLike(reader),
          .mean = reader.Float("mean", 0.0F),
          .deviation = reader.Float("std", 1.0F),
          .seed = reader.Int("seed", 0)};
}

template <typename T>
void DrawSeeded(const GaussianAttrs& attrs, T* out, int64_t n) {
  std::mt19937_64 engine = SeededEngine(attrs.seed);
  // With the parameters in the distribution a deviation of 0 or less would be undefined.
  std::normal_distribution<T> normal;
  for (int64_t i = 0; i < n; ++i) out[i] = normal(engine) * attrs.deviation + attrs.mean;
}

// A block makes two pairs of floats, or one of doubles.
void Draw(const KernelContext& ctx, const GaussianAttrs& attrs, float* out, int64_t n) {
  const float mean = attrs.mean;
  const float deviation = attrs.deviation;
  ForEachBlock<4>(ctx, n, [=](int64_t first, int count, const PhiloxBlock& block) {
    const auto [a, b] = NormalPair<float>(block[0], block[1]);
    const auto [c, d] = NormalPair<float>(block[2], block[3]);
    const float normals[] = {a, b, c, d};
    for (int k = 0; k < count; ++k) out[first + k] = mean + deviation * normals[k];
  });
}

void Draw(const KernelContext& ctx, const GaussianAttrs& attrs, double* out, int64_t n) {
  const double mean = attrs.mean;
  const double deviation = attrs.deviation;
  ForEachBlock<2>(ctx, n, [=](int64_t first, int count, const PhiloxBlock& block) {
    const auto [a, b] = NormalPair<double>(Bits64(block, 0), Bits64(block, 1));
    out[first] = mean + deviation * a;
    if (count == 2) out[first + 1] = mean + deviation * b;
  });
}

template <typename T>
absl::Status Gaussian(KernelContext& ctx) {
  const GaussianAttrs& attrs = ctx.attrs<GaussianAttrs>();
  Tensor& out = ctx.output(kOut);
  if (attrs.seed != 0) {
    DrawSeeded<T>(attrs, out.mutable_data<T>(), out.numel());
  } else {
    Draw(ctx, attrs, out.mutable_data<T>(), out.numel());
  }
  return absl::OkStatus();
}

const std::vector<KernelDef> kKernels = {{DType::kFloat32, Gaussian<float>},
                                         {DType::kFloat64, Gaussian<double>}};

INTERP_REGISTER_OP(RandomOp<GaussianAttrs, ReadGaussian>("gaussian_random", kKernels));
INTERP_REGISTER_OP(RandomLikeOp<GaussianAttrs, ReadGaussian>("gaussian_random_batch_size_like",
                                                             kKernels));

constexpr int kX = 0;

INTERP_REGISTER_OP(OpDef{
    .type = "gaussian_inplace",
    .inputs = {{"x", kNoNeedBuffer}},
    .outputs = {{"out"}},
    .parse = ParseAttrs<GaussianAttrs, ReadGaussian>,
    .infer = [](InferContext& ctx) -> absl::Status {
      ctx.ShareShape(kX, kOut);
      return absl::OkStatus();
    },
    .kernels = kKernels,
    .random = true,
    .gradient = {.inputs = {"out@GRAD"}, .outputs = {"x@GRAD"}},
});

}  // namespace
}  // namespace interp::random
