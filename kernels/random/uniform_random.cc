// uniform_random, uniform_random_batch_size_like: Out = numbers spread evenly over [min, max). With
// diag_num > 0 the elements 0, diag_step + 1, 2 * (diag_step + 1), ... of the flat tensor,
// `diag_num` of them, are diag_val.
#include "core/float16.h"
#include "kernels/random/draw.h"
#include "kernels/random/random_attrs.h"
#include "kernels/random/shape_inputs.h"

namespace interp::random {
namespace {

constexpr int kOut = 0;

UniformAttrs ReadUniform(AttrReader& reader) {
  return {.dtype = reader.Type("dtype", DType::kFloat32),
          .like = ReadBatchSizeLike(reader),
          .min = reader.Float("min", -1.0F),
          .max = reader.Float("max", 1.0F),
          .seed = reader.Int("seed", 0),
          .diag_num = reader.Int("diag_num", 0),
          .diag_step = reader.Int("diag_step", 0),
          .diag_val = reader.Float("diag_val", 1.0F)};
}

// `Wide` is what numbers are drawn in.
template <typename T, typename Wide>
void DrawSeeded(const UniformAttrs& attrs, T* out, int64_t n) {
  std::mt19937_64 engine = SeededEngine(attrs.seed);
  std::uniform_real_distribution<Wide> uniform(attrs.min, attrs.max);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(uniform(engine));
}

template <typename T, typename Wide>
void Draw(const KernelContext& ctx, const UniformAttrs& attrs, T* out, int64_t n) {
  const Wide min = attrs.min;
  const Wide range = static_cast<Wide>(attrs.max) - min;
  if constexpr (sizeof(Wide) == sizeof(float)) {
    ForEachBits32(ctx, n, [=](int64_t i, uint32_t bits) {
      out[i] = static_cast<T>(min + range * UnitFloat(bits));
    });
  } else {
    ForEachBits64(ctx, n, [=](int64_t i, uint64_t bits) {
      out[i] = static_cast<T>(min + range * UnitDouble(bits));
    });
  }
}

template <typename T>
absl::Status SetDiagonal(const UniformAttrs& attrs, T* out, int64_t n) {
  INTERP_RETURN_IF_ERROR(CheckDiagonal(attrs, n));
  for (int64_t i = 0; i < attrs.diag_num; ++i) {
    out[i * attrs.diag_stride()] = static_cast<T>(attrs.diag_val);
  }
  return absl::OkStatus();
}

template <typename T, typename Wide>
absl::Status DrawInto(KernelContext& ctx, const UniformAttrs& attrs) {
  Tensor& tensor = ctx.output(kOut);
  T* const out = tensor.mutable_data<T>();
  const int64_t n = tensor.numel();
  if (attrs.seed != 0) {
    DrawSeeded<T, Wide>(attrs, out, n);
  } else {
    Draw<T, Wide>(ctx, attrs, out, n);
  }
  return SetDiagonal(attrs, out, n);
}

template <typename T, typename Wide>
absl::Status Uniform(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const UniformAttrs attrs, UniformAttrsOf(ctx));
  return DrawInto<T, Wide>(ctx, attrs);
}

template <typename T, typename Wide>
absl::Status UniformLike(KernelContext& ctx) {
  return DrawInto<T, Wide>(ctx, ctx.attrs<UniformAttrs>());
}

OpDef UniformDef() {
  OpDef def = RandomOp<UniformAttrs, ReadUniform>("uniform_random",
                                                  {{DType::kFloat32, Uniform<float, float>},
                                                   {DType::kFloat64, Uniform<double, double>},
                                                   {DType::kBFloat16, Uniform<bfloat16, float>}});
  def.inputs.push_back({"MinTensor", kOptional | kAnyDType | kHostInput, "min"});
  def.inputs.push_back({"MaxTensor", kOptional | kAnyDType | kHostInput, "max"});
  return def;
}

INTERP_REGISTER_OP(UniformDef());
INTERP_REGISTER_OP(RandomLikeOp<UniformAttrs, ReadUniform>(
    "uniform_random_batch_size_like", {{DType::kFloat32, UniformLike<float, float>},
                                       {DType::kFloat64, UniformLike<double, double>},
                                       {DType::kBFloat16, UniformLike<bfloat16, float>}}));

}  // namespace
}  // namespace interp::random
