// gather_nd_grad: X@GRAD = 0, plus the slices of Out@GRAD added where Index says they come from.
// scatter_nd_add_grad: X@GRAD = Out@GRAD, Updates@GRAD = the slices of it that Index addresses.
#include "core/op_def.h"
#include "kernels/tensor/coordinates.h"
#include "kernels/util/copy.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/indices.h"
#include "kernels/util/row_add.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kIndex = 1;
constexpr int kX = 2;
constexpr int kXGrad = 0;
constexpr int kUpdatesGrad = 1;

// Tensors of shape `x` as rows, one for each slice that coordinates of `index` address.
AddedRows RowsOf(const Shape& x, const Shape& index) {
  const int depth = static_cast<int>(index.back());
  return {.outer = 1, .rows = x.numel(0, depth), .columns = x.numel(depth, x.rank())};
}

// Calls body(rows, count) with the row of each tuple of coordinates.
template <typename Body>
absl::Status WithRows(const KernelContext& ctx, const Shape& x, const Body& body) {
  const Tensor& index = ctx.input(kIndex);
  const int64_t count = index.shape.numel(0, index.shape.rank() - 1);
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(count) * sizeof(int64_t)));
  int64_t* const rows = work.data<int64_t>();
  INTERP_RETURN_IF_ERROR(WithIndices(index, "Index", [&](const auto* values) {
    return ForEachTuple(x, index, values, [&](int64_t n, int64_t row) { rows[n] = row; });
  }));
  body(rows, count);
  return absl::OkStatus();
}

absl::Status InferGatherNdGrad(InferContext& ctx) {
  const Shape& given = ctx.input(kOutGrad).shape;
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          AddressedShape(ctx.input(kX).shape, ctx.input(kIndex).shape));
  if (!(given == shape)) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(given), ", expected ",
                           ToString(shape));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status GatherNdGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(kXGrad);
  return WithRows(ctx, x_grad.shape, [&](const int64_t* rows, int64_t count) {
    FillZero(ctx.num_threads(), x_grad);
    AddRows(ctx.num_threads(), RowsOf(x_grad.shape, ctx.input(kIndex).shape),
            ctx.input(kOutGrad).data<T>(), rows, count, x_grad.mutable_data<T>());
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "gather_nd_grad",
    .inputs = {{"Out@GRAD"}, {"Index", kAnyDType}, {"X", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD"}},
    .infer = InferGatherNdGrad,
    .kernels = GradientRows([]<typename T>() -> KernelFn { return GatherNdGrad<T>; }),
});

absl::Status InferScatterNdAddGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          AddressedShape(ctx.input(kOutGrad).shape, ctx.input(kIndex).shape));
  ctx.SetShape(kXGrad, ctx.input(kOutGrad).shape);
  ctx.SetShape(kUpdatesGrad, shape);
  return absl::OkStatus();
}

absl::Status ScatterNdAddGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  if (Tensor* const updates_grad = ctx.optional_output(kUpdatesGrad)) {
    const AddedRows shape = RowsOf(out_grad.shape, ctx.input(kIndex).shape);
    const RowBlocks blocks = {
        .rows = shape.rows,
        .row_bytes = shape.columns * static_cast<int64_t>(SizeOf(out_grad.dtype))};
    INTERP_RETURN_IF_ERROR(WithRows(ctx, out_grad.shape, [&](const int64_t* rows, int64_t count) {
      GatherRows(ctx.num_threads(), blocks, out_grad.raw_data(), rows, count,
                 updates_grad->mutable_raw_data());
    }));
  }
  if (Tensor* const x_grad = ctx.optional_output(kXGrad)) CopyUnlessShared(out_grad, *x_grad);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "scatter_nd_add_grad",
    .inputs = {{"Out@GRAD"},
               {"Index", kAnyDType},
               {"Updates", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD", kOptional}, {"Updates@GRAD", kOptional}},
    .infer = InferScatterNdAddGrad,
    .kernels = {{DType::kUndefined, ScatterNdAddGrad}},
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
