// randperm: Out = 0, ..., n - 1 in random order, all orders equally likely (Fisher and Yates).
#include <algorithm>
#include <numeric>

#include "kernels/random/draw.h"

namespace interp::random {
namespace {

constexpr int kOut = 0;

struct RandpermAttrs {
  DType dtype = DType::kInt64;
  int64_t n = 0;
  int32_t seed = 0;  // programs before Paddle 2.3 have it
};

RandpermAttrs ReadRandperm(AttrReader& reader) {
  const RandpermAttrs attrs = {.dtype = reader.Type("dtype", DType::kInt64),
                               .n = reader.Int("n", -1),
                               .seed = reader.Int("seed", 0)};
  if (attrs.n < 0) {
    reader.Fail(absl::StrCat("attribute 'n' is ", attrs.n, ", expected 0 or more"));
  }
  return attrs;
}

DType RandpermDType(const DTypeContext& ctx) { return ctx.attrs<RandpermAttrs>().dtype; }

absl::Status Infer(InferContext& ctx) {
  ctx.SetShape(kOut, {ctx.attrs<RandpermAttrs>().n});
  return absl::OkStatus();
}

template <typename T>
absl::Status Randperm(KernelContext& ctx) {
  const RandpermAttrs& attrs = ctx.attrs<RandpermAttrs>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  std::iota(out, out + attrs.n, T{0});
  if (attrs.seed != 0) {
    std::shuffle(out, out + attrs.n, SeededEngine(attrs.seed));
    return absl::OkStatus();
  }
  // One after the other: each exchange depends on those before.
  const RandomStream stream = ctx.random();
  for (int64_t i = 0; i + 1 < attrs.n; ++i) {
    const uint64_t bits = BitsOf(stream, i);
    std::swap(out[i], out[i + static_cast<int64_t>(Below(bits, attrs.n - i))]);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "randperm",
    .inputs = {},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RandpermAttrs, ReadRandperm>,
    .kernel_dtype = RandpermDType,
    .infer = Infer,
    .kernels = {{DType::kInt32, Randperm<int32_t>},
                {DType::kInt64, Randperm<int64_t>},
                {DType::kFloat32, Randperm<float>},
                {DType::kFloat64, Randperm<double>}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
