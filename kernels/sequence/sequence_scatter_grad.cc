// sequence_scatter_grad: X@GRAD = Out@GRAD; Updates@GRAD[k] = Out@GRAD[i][Ids[k]] for each k in
// sequence i of Ids.
#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/copy.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kIds = 1;
constexpr int kUpdates = 2;
constexpr int kXGrad = 0;
constexpr int kUpdatesGrad = 1;

absl::Status InferSequenceScatterGrad(InferContext& ctx) {
  const Tensor& ids = ctx.input(kIds);
  const Shape& grad = ctx.input(kOutGrad).shape;
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(ids, "Ids"));
  if (grad.rank() == 0 || SequenceCount(offsets) > grad[0]) {
    return InvalidArgument("input 'Ids' has ", SequenceCount(offsets),
                           " sequences, but input 'Out@GRAD' has shape ", ToString(grad),
                           ", expected a row for each of them");
  }
  const int64_t updates = ctx.input(kUpdates).numel();
  if (ids.numel() != offsets.back() || updates != offsets.back()) {
    return InvalidArgument("inputs 'Ids' and 'Updates' have ", ids.numel(), " and ", updates,
                           " elements, expected ", offsets.back(), ", the rows of 'Ids'");
  }
  ctx.ShareShape(kOutGrad, kXGrad);
  ctx.ShareShape(kUpdates, kUpdatesGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SequenceScatterGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  const Tensor& ids = ctx.input(kIds);
  if (Tensor* out = ctx.optional_output(kXGrad)) CopyUnlessShared(grad, *out);
  Tensor* const updates = ctx.optional_output(kUpdatesGrad);
  if (updates == nullptr) return absl::OkStatus();
  const Offsets offsets = ids.lod.back();
  const int64_t row_size = RowSize(grad);
  const T* const rows = grad.data<T>();
  T* const out = updates->mutable_data<T>();
  return WithIndices(ids, "Ids", [&](const auto* columns) {
    INTERP_RETURN_IF_ERROR(CheckIndices(columns, offsets.back(), row_size, "Ids"));
    for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
      const T* const row = rows + i * row_size;
      for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) out[k] = row[columns[k]];
    }
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_scatter_grad",
    .inputs = {{"Out@GRAD"}, {"Ids", kAnyDType}, {"Updates", kNoNeedBuffer}},
    .outputs = {{"X@GRAD", kOptional}, {"Updates@GRAD", kOptional}},
    .infer = InferSequenceScatterGrad,
    .kernels = {{DType::kFloat32, SequenceScatterGrad<float>},
                {DType::kFloat64, SequenceScatterGrad<double>}},
});

}  // namespace
}  // namespace interp
