// Rows of uniform_random, gaussian_random, randint, seed and range.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/row.h"
#include "kernels/random/random_attrs.h"

namespace interp::cuda {
namespace {

using random::GaussianAttrs;
using random::RandintAttrs;
using random::UniformAttrs;

absl::Status DrawInto(KernelContext& ctx, const UniformAttrs& attrs) {
  Tensor& out = ctx.output(/*slot=*/0);
  INTERP_RETURN_IF_ERROR(random::CheckDiagonal(attrs, out.numel()));
  INTERP_ASSIGN_OR_RETURN(const RandomNumbers random, RandomNumbersOf(ctx));
  return DrawUniform(out.dtype,
                     {.random = random,
                      .seed = attrs.seed,
                      .min = attrs.min,
                      .max = attrs.max,
                      .diag_num = attrs.diag_num,
                      .diag_stride = attrs.diag_stride(),
                      .diag_val = attrs.diag_val,
                      .out = out.mutable_raw_data(),
                      .size = out.numel()},
                     StreamOf(ctx));
}

absl::Status UniformRow(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const UniformAttrs attrs, random::UniformAttrsOf(ctx));
  return DrawInto(ctx, attrs);
}

absl::Status UniformLikeRow(KernelContext& ctx) { return DrawInto(ctx, ctx.attrs<UniformAttrs>()); }

absl::Status GaussianRow(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GaussianAttrs>();
  Tensor& out = ctx.output(/*slot=*/0);
  INTERP_ASSIGN_OR_RETURN(const RandomNumbers random, RandomNumbersOf(ctx));
  return DrawNormal(out.dtype,
                    {.random = random,
                     .seed = attrs.seed,
                     .mean = attrs.mean,
                     .deviation = attrs.deviation,
                     .out = out.mutable_raw_data(),
                     .size = out.numel()},
                    StreamOf(ctx));
}

absl::Status RandintRow(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<RandintAttrs>();
  Tensor& out = ctx.output(/*slot=*/0);
  INTERP_ASSIGN_OR_RETURN(const RandomNumbers random, RandomNumbersOf(ctx));
  return DrawIntegers(out.dtype,
                      {.random = random,
                       .low = attrs.low,
                       .range = static_cast<uint64_t>(attrs.high - attrs.low),
                       .out = out.mutable_raw_data(),
                       .size = out.numel()},
                      StreamOf(ctx));
}

// With one, how many numbers of the engine an element takes hangs on those numbers.
bool HasNoSeed(const void* attrs) { return static_cast<const RandintAttrs*>(attrs)->seed == 0; }

absl::Status SeedRow(KernelContext& ctx) {
  const int32_t seed = ctx.attrs<int32_t>();
  int32_t* const out = ctx.output(/*slot=*/0).mutable_data<int32_t>();
  if (seed != 0) return FillWith(sizeof(seed), &seed, out, /*count=*/1, StreamOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const RandomNumbers random, RandomNumbersOf(ctx));
  return DrawSeed(random, out, StreamOf(ctx));
}

// Start, End, Step -> Out. Floats add up rounding errors one by one, which the host does.
template <typename T>
absl::Status RangeRow(KernelContext& ctx) {
  Tensor& out = ctx.output(/*slot=*/0);
  return FillRange(out.dtype, *ctx.input(/*slot=*/0).data<T>(), *ctx.input(/*slot=*/2).data<T>(),
                   out.mutable_raw_data(), out.numel(), StreamOf(ctx));
}

constexpr std::initializer_list<DType> kDrawn = {DType::kFloat32, DType::kFloat64,
                                                 DType::kBFloat16};
constexpr std::initializer_list<DType> kNormal = {DType::kFloat32, DType::kFloat64};
constexpr std::initializer_list<DType> kDrawnIntegers = {DType::kInt32, DType::kInt64};

INTERP_REGISTER_KERNELS("uniform_random", RowsFor(kDrawn, UniformRow));
INTERP_REGISTER_KERNELS("uniform_random_batch_size_like", RowsFor(kDrawn, UniformLikeRow));
INTERP_REGISTER_KERNELS("gaussian_random", RowsFor(kNormal, GaussianRow));
INTERP_REGISTER_KERNELS("gaussian_random_batch_size_like", RowsFor(kNormal, GaussianRow));
INTERP_REGISTER_KERNELS("gaussian_inplace", RowsFor(kNormal, GaussianRow));
INTERP_REGISTER_KERNELS("randint", RowsFor(kDrawnIntegers, RandintRow, HasNoSeed));
INTERP_REGISTER_KERNELS("seed", RowsFor({DType::kUndefined}, SeedRow));
INTERP_REGISTER_KERNELS("range", RowsFor({DType::kInt32}, RangeRow<int32_t>));
INTERP_REGISTER_KERNELS("range", RowsFor({DType::kInt64}, RangeRow<int64_t>));

}  // namespace
}  // namespace interp::cuda
