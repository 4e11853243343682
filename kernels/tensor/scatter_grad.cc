// scatter_grad: X@GRAD = Out@GRAD with 0 in the rows that Ids lists; Updates@GRAD[i] = row Ids[i]
// of Out@GRAD. As in Paddle, an update that a later one overwrote gets the gradient, too.
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/copy.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kIds = 1;
constexpr int kUpdates = 2;
constexpr int kXGrad = 0;
constexpr int kUpdatesGrad = 1;

absl::Status InferScatterGrad(InferContext& ctx) {
  const Shape& whole = ctx.input(kOutGrad).shape;
  const int64_t count = ctx.input(kIds).numel();
  if (whole.rank() == 0) return InvalidArgument("'Out@GRAD' has no rows");
  ctx.SetShape(kXGrad, whole);
  if (!ctx.has_output(kUpdatesGrad)) return absl::OkStatus();
  Shape shape = whole;
  shape[0] = count;
  if (const Tensor* const updates = ctx.optional_input(kUpdates)) {
    if (updates->numel() != shape.CheckedNumel()) {
      return InvalidArgument("'Updates' has shape ", ToString(updates->shape), ", expected ",
                             ToString(shape));
    }
    shape = updates->shape;
  }
  ctx.SetShape(kUpdatesGrad, shape);
  return absl::OkStatus();
}

absl::Status ScatterGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  const Tensor& ids = ctx.input(kIds);
  const int64_t count = ids.numel();
  const RowBlocks blocks = {.rows = out_grad.shape[0],
                            .row_bytes = out_grad.shape.numel(1, out_grad.shape.rank()) *
                                         static_cast<int64_t>(SizeOf(out_grad.dtype))};
  return WithIndices(ids, "Ids", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, count, blocks.rows, "Ids"));
    if (Tensor* const updates_grad = ctx.optional_output(kUpdatesGrad)) {
      GatherRows(ctx.num_threads(), blocks, out_grad.raw_data(), values, count,
                 updates_grad->mutable_raw_data());
    }
    Tensor* const x_grad = ctx.optional_output(kXGrad);
    if (x_grad == nullptr || blocks.row_bytes == 0) return absl::OkStatus();
    CopyUnlessShared(out_grad, *x_grad);
    char* const rows = static_cast<char*>(x_grad->mutable_raw_data());
    for (int64_t i = 0; i < count; ++i) {
      std::memset(rows + static_cast<int64_t>(values[i]) * blocks.row_bytes, 0,
                  static_cast<size_t>(blocks.row_bytes));
    }
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "scatter_grad",
    .inputs = {{"Out@GRAD"},
               {"Ids", kAnyDType},
               {"Updates", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD", kOptional}, {"Updates@GRAD", kOptional}},
    .infer = InferScatterGrad,
    .kernels = {{DType::kUndefined, ScatterGrad}},
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
