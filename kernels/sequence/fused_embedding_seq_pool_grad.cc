// fused_embedding_seq_pool_grad: Out@GRAD of a sequence is added to the row of each of its ids.
#include <utility>
#include <vector>

#include "kernels/sequence/fused_embedding_seq_pool.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/row_gradient.h"

namespace interp {
namespace {

constexpr int kOutGrad = 2;
constexpr int kWGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveEmbeddingPool(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kPoolW, kWGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status EmbeddingPoolGrad(KernelContext& ctx) {
  std::vector<int64_t> used;
  INTERP_RETURN_IF_ERROR(ForEachPooledId(ctx, [&](int64_t id, int64_t) { used.push_back(id); }));
  RowGradient<T> w_grad;
  INTERP_RETURN_IF_ERROR(w_grad.Prepare(ctx, kWGrad, ctx.input(kPoolW).shape, std::move(used)));
  const T* const grad = ctx.input(kOutGrad).data<T>();
  return ForEachPooledId(ctx, [&](int64_t id, int64_t at) { w_grad.Add(id, T{1}, grad + at); });
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_embedding_seq_pool_grad",
    .inputs = {{"W", kNoNeedBuffer}, {"Ids", kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"W@GRAD", kMayBeRows}},
    .parse = ParseAttrs<EmbeddingPoolAttrs, ReadEmbeddingPoolAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, EmbeddingPoolGrad<float>},
                {DType::kFloat64, EmbeddingPoolGrad<double>}},
});

}  // namespace
}  // namespace interp
