// fused_embedding_seq_pool: for each sequence of Ids the sum of the rows of W that they name; ids
// side by side in a row have sums side by side. Empty sequences give 0.
#include "kernels/sequence/fused_embedding_seq_pool.h"

#include <algorithm>

namespace interp {
namespace {

constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveEmbeddingPool(ctx));
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

template <typename T>
absl::Status EmbeddingPool(KernelContext& ctx) {
  const int64_t width = ctx.input(kPoolW).shape[1];
  const T* const w = ctx.input(kPoolW).data<T>();
  Tensor& out = ctx.output(kOut);
  T* const to = out.mutable_data<T>();
  std::fill_n(to, out.numel(), T{0});
  return ForEachPooledId(ctx, [=](int64_t id, int64_t at) {
    for (int64_t k = 0; k < width; ++k) to[at + k] += w[id * width + k];
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_embedding_seq_pool",
    .inputs = {{"W"}, {"Ids", kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<EmbeddingPoolAttrs, ReadEmbeddingPoolAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, EmbeddingPool<float>}, {DType::kFloat64, EmbeddingPool<double>}},
    .gradient = {.inputs = {"W", "Ids", "Out@GRAD"}, .outputs = {"W@GRAD"}},
});

}  // namespace
}  // namespace interp
