// sequence_softmax_grad: X@GRAD = Out (Out@GRAD - the sum of Out Out@GRAD over the sequence).
#include "core/op_def.h"
#include "kernels/product/gemm.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferSequenceSoftmaxGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(SequenceOffsets(x, "X").status());
  if (RowSize(x) != 1 || ctx.input(kOut).numel() != x.shape[0] ||
      ctx.input(kOutGrad).numel() != x.shape[0]) {
    return InvalidArgument("inputs 'X' ", ToString(x.shape), ", 'Out' ",
                           ToString(ctx.input(kOut).shape), " and 'Out@GRAD' ",
                           ToString(ctx.input(kOutGrad).shape),
                           ": expected the same number of rows of one element");
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SequenceSoftmaxGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  const Offsets offsets = ctx.input(kX).lod.back();
  const int64_t count = SequenceCount(offsets);
  const T* const y = ctx.input(kOut).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = x_grad->mutable_data<T>();
  const int64_t grain = GrainForShare(x_grad->shape[0], count);
  ParallelFor(ctx.num_threads(), count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const T sum = nn::Dot(y + offsets[i], grad + offsets[i], offsets[i + 1] - offsets[i]);
      for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) out[k] = y[k] * (grad[k] - sum);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_softmax_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .infer = InferSequenceSoftmaxGrad,
    .kernels = {{DType::kFloat32, SequenceSoftmaxGrad<float>},
                {DType::kFloat64, SequenceSoftmaxGrad<double>}},
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
