// seed: a number other than 0 for `dropout`, so that a recomputed one draws the same mask: the
// attribute `seed`, or a random one where that is 0 or `deterministic` asks for a generator's.
#include "core/op_def.h"

namespace interp::random {
namespace {

constexpr int kOut = 0;

int32_t ReadSeed(AttrReader& reader) {
  const int32_t seed = reader.Int("seed", 0);
  return reader.Bool("deterministic", false) ? 0 : seed;
}

absl::Status Infer(InferContext& ctx) {
  ctx.SetShape(kOut, {1});
  return absl::OkStatus();
}

absl::Status Seed(KernelContext& ctx) {
  int32_t seed = ctx.attrs<int32_t>();
  if (seed == 0) seed = static_cast<int32_t>(ctx.random().Word(0) | 1u);
  *ctx.output(kOut).mutable_data<int32_t>() = seed;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "seed",
    .inputs = {},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<int32_t, ReadSeed>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, DType::kInt32); },
    .infer = Infer,
    .kernels = {{DType::kUndefined, Seed}},
    .random = true,
});

}  // namespace
}  // namespace interp::random
