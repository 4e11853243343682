// sequence_softmax: softmax of the elements of each sequence of X, whose rows have one element.
#include "core/op_def.h"
#include "kernels/product/row_ops.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status InferSequenceSoftmax(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(SequenceOffsets(x, "X").status());
  if (RowSize(x) != 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected rows of one element");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
void Softmax(const T* x, int64_t n, T* out) {
  const T max = nn::RowMax(x, n);
  for (int64_t i = 0; i < n; ++i) out[i] = Exp(x[i] - max);
  const T factor = T{1} / nn::RowSum(out, n);
  for (int64_t i = 0; i < n; ++i) out[i] *= factor;
}

template <typename T>
absl::Status SequenceSoftmax(KernelContext& ctx) {
  const Tensor& x_tensor = ctx.input(kX);
  const Offsets offsets = x_tensor.lod.back();
  const int64_t count = SequenceCount(offsets);
  const T* const x = x_tensor.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  constexpr int64_t kGrain = 4 * 1024;  // elements: an exponential costs more than a copy
  const int64_t grain = GrainForShare(x_tensor.shape[0], count, kGrain);
  ParallelFor(ctx.num_threads(), count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t length = offsets[i + 1] - offsets[i];
      if (length > 0) Softmax(x + offsets[i], length, out + offsets[i]);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_softmax",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferSequenceSoftmax,
    .kernels = {{DType::kFloat32, SequenceSoftmax<float>},
                {DType::kFloat64, SequenceSoftmax<double>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
