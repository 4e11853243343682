// Rows of ops that pick rows of a tensor by index, scatter to them, and of their gradients. An
// index out of range picks zeros and names no row: a GPU does not look before it enqueues.
#include "kernels/cuda/gather.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/rows_by_index.h"
#include "kernels/tensor/gather.h"
#include "kernels/tensor/lookup_table.h"
#include "kernels/tensor/scatter.h"
#include "kernels/util/data_mover.h"

namespace interp::cuda {
namespace {

int64_t Bytes(const Tensor& tensor, int64_t elements) {
  return elements * static_cast<int64_t>(SizeOf(tensor.dtype));
}

// X, Index -> Out along `axis`.
absl::Status GatherAlong(KernelContext& ctx, int axis) {
  const Tensor& x = ctx.input(/*slot=*/0);
  const Tensor& index = ctx.input(/*slot=*/1);
  return Gather({.x = x.raw_data(),
                 .indices = index.raw_data(),
                 .index_dtype = index.dtype,
                 .out = ctx.output(/*slot=*/0).mutable_raw_data(),
                 .outer = x.shape.numel(0, axis),
                 .rows = x.shape[axis],
                 .row_bytes = Bytes(x, x.shape.numel(axis + 1, x.shape.rank())),
                 .count = index.numel()},
                StreamOf(ctx));
}

absl::Status GatherByAxis(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int axis, GatherAxis(ctx, /*x=*/0, /*axis=*/2));
  return GatherAlong(ctx, axis);
}

absl::Status IndexSelect(KernelContext& ctx) {
  const int rank = ctx.input(/*slot=*/0).shape.rank();
  return GatherAlong(ctx, *NormalizeAxis(ctx.attrs<GatherAttrs>().axis, rank));
}

absl::Status UpdateRowsOf(const KernelContext& ctx, DType dtype, RowUpdate update,
                          const RowsByIndex& arguments) {
  return UpdateRows(dtype, update, arguments, WorkspaceOf(ctx), StreamOf(ctx));
}

// Out@GRAD, X, Index, Axis -> X@GRAD. Of gather, as in Paddle, every block gets the sums of the
// first one.
template <bool kFirstBlockForAll>
absl::Status GatherGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int axis, GatherAxis(ctx, /*x=*/1, /*axis=*/3));
  const Tensor& index = ctx.input(/*slot=*/2);
  Tensor& x_grad = ctx.output(/*slot=*/0);
  const Shape& shape = x_grad.shape;
  const int64_t blocks = shape.numel(0, axis);
  const RowsByIndex arguments = {.updates = ctx.input(/*slot=*/0).raw_data(),
                                 .indices = index.raw_data(),
                                 .index_dtype = index.dtype,
                                 .out = x_grad.mutable_raw_data(),
                                 .outer = kFirstBlockForAll ? 1 : blocks,
                                 .rows = shape[axis],
                                 .columns = shape.numel(axis + 1, shape.rank()),
                                 .count = index.numel()};
  if (x_grad.numel() == 0) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(UpdateRowsOf(ctx, x_grad.dtype, RowUpdate::kSum, arguments));
  if (!kFirstBlockForAll || blocks == 1) return absl::OkStatus();
  const int64_t block = x_grad.numel() / blocks;
  return CopyStrided(ctx, CopyDims{{blocks - 1, 0, block}, {block, 1, 1}}, {x_grad},
                     {x_grad, block});
}

// W, Ids -> Out.
absl::Status Lookup(KernelContext& ctx) {
  const Tensor& w = ctx.input(/*slot=*/0);
  const Tensor& ids = ctx.input(/*slot=*/1);
  return Gather({.x = w.raw_data(),
                 .indices = ids.raw_data(),
                 .index_dtype = ids.dtype,
                 .out = ctx.output(/*slot=*/0).mutable_raw_data(),
                 .rows = w.shape[0],
                 .row_bytes = Bytes(w, w.shape[1]),
                 .count = ids.numel(),
                 .zero_index = ctx.attrs<LookupAttrs>().padding_idx},
                StreamOf(ctx));
}

// W, Ids, Out@GRAD -> W@GRAD, a tensor: selected rows lie on the host.
absl::Status LookupGrad(KernelContext& ctx) {
  if (!ctx.has_output(/*slot=*/0)) return absl::OkStatus();
  const Tensor& ids = ctx.input(/*slot=*/1);
  Tensor& w_grad = ctx.output(/*slot=*/0);
  return UpdateRowsOf(ctx, w_grad.dtype, RowUpdate::kSum,
                      {.updates = ctx.input(/*slot=*/2).raw_data(),
                       .indices = ids.raw_data(),
                       .index_dtype = ids.dtype,
                       .out = w_grad.mutable_raw_data(),
                       .rows = w_grad.shape[0],
                       .columns = w_grad.shape[1],
                       .count = ids.numel(),
                       .skipped_index = ctx.attrs<LookupAttrs>().padding_idx});
}

// X, Ids, Updates -> Out.
absl::Status Scatter(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  const Tensor& ids = ctx.input(/*slot=*/1);
  return UpdateRowsOf(ctx, x.dtype,
                      ctx.attrs<ScatterAttrs>().overwrite ? RowUpdate::kLast : RowUpdate::kReplace,
                      {.old = x.raw_data(),
                       .updates = ctx.input(/*slot=*/2).raw_data(),
                       .indices = ids.raw_data(),
                       .index_dtype = ids.dtype,
                       .out = ctx.output(/*slot=*/0).mutable_raw_data(),
                       .rows = x.shape[0],
                       .columns = x.shape.numel(1, x.shape.rank()),
                       .count = ids.numel()});
}

// Out@GRAD, Ids -> X@GRAD without the rows that were written over, Updates@GRAD.
absl::Status ScatterGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(/*slot=*/0);
  const Tensor& ids = ctx.input(/*slot=*/1);
  const int64_t columns = out_grad.shape.numel(1, out_grad.shape.rank());
  if (Tensor* const updates_grad = ctx.optional_output(/*slot=*/1)) {
    INTERP_RETURN_IF_ERROR(Gather({.x = out_grad.raw_data(),
                                   .indices = ids.raw_data(),
                                   .index_dtype = ids.dtype,
                                   .out = updates_grad->mutable_raw_data(),
                                   .rows = out_grad.shape[0],
                                   .row_bytes = Bytes(out_grad, columns),
                                   .count = ids.numel()},
                                  StreamOf(ctx)));
  }
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr) return absl::OkStatus();
  return UpdateRowsOf(ctx, out_grad.dtype, RowUpdate::kLast,
                      {.old = out_grad.raw_data(),
                       .indices = ids.raw_data(),
                       .index_dtype = ids.dtype,
                       .out = x_grad->mutable_raw_data(),
                       .rows = out_grad.shape[0],
                       .columns = columns,
                       .count = ids.numel()});
}

// The slices of a tensor of shape `x` that tuples of coordinates name.
struct Slices {
  Workspace numbers;  // int64
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

absl::StatusOr<Slices> NumberSlices(const KernelContext& ctx, const Tensor& index, const Shape& x) {
  const auto depth = static_cast<int>(index.shape.back());
  const int64_t count = index.shape.numel(0, index.shape.rank() - 1);
  INTERP_ASSIGN_OR_RETURN(Workspace numbers,
                          ctx.workspace(static_cast<size_t>(count) * sizeof(int64_t)));
  INTERP_RETURN_IF_ERROR(RowsOfTuples(index.dtype, index.raw_data(), count,
                                      x.dims().subspan(0, static_cast<size_t>(depth)),
                                      numbers.data<int64_t>(), StreamOf(ctx)));
  return Slices{std::move(numbers), count, x.numel(0, depth), x.numel(depth, x.rank())};
}

absl::Status GatherSlices(const KernelContext& ctx, const Slices& slices, const Tensor& x,
                          Tensor& out) {
  return Gather({.x = x.raw_data(),
                 .indices = slices.numbers.data<int64_t>(),
                 .out = out.mutable_raw_data(),
                 .rows = slices.rows,
                 .row_bytes = Bytes(x, slices.columns),
                 .count = slices.count},
                StreamOf(ctx));
}

absl::Status UpdateSlices(const KernelContext& ctx, const Slices& slices, RowUpdate update,
                          const void* old, const Tensor& updates, Tensor& out) {
  return UpdateRowsOf(ctx, out.dtype, update,
                      {.old = old,
                       .updates = updates.raw_data(),
                       .indices = slices.numbers.data<int64_t>(),
                       .out = out.mutable_raw_data(),
                       .rows = slices.rows,
                       .columns = slices.columns,
                       .count = slices.count});
}

// X, Index -> Out.
absl::Status GatherNd(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  INTERP_ASSIGN_OR_RETURN(const Slices slices, NumberSlices(ctx, ctx.input(/*slot=*/1), x.shape));
  return GatherSlices(ctx, slices, x, ctx.output(/*slot=*/0));
}

// Out@GRAD, Index -> X@GRAD.
absl::Status GatherNdGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(/*slot=*/0);
  INTERP_ASSIGN_OR_RETURN(const Slices slices,
                          NumberSlices(ctx, ctx.input(/*slot=*/1), x_grad.shape));
  return UpdateSlices(ctx, slices, RowUpdate::kSum, nullptr, ctx.input(/*slot=*/0), x_grad);
}

// X, Index, Updates -> Out.
absl::Status ScatterNdAdd(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  INTERP_ASSIGN_OR_RETURN(const Slices slices, NumberSlices(ctx, ctx.input(/*slot=*/1), x.shape));
  return UpdateSlices(ctx, slices, RowUpdate::kAdd, x.raw_data(), ctx.input(/*slot=*/2),
                      ctx.output(/*slot=*/0));
}

// Out@GRAD, Index -> X@GRAD, Updates@GRAD.
absl::Status ScatterNdAddGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(/*slot=*/0);
  if (Tensor* const updates_grad = ctx.optional_output(/*slot=*/1)) {
    INTERP_ASSIGN_OR_RETURN(const Slices slices,
                            NumberSlices(ctx, ctx.input(/*slot=*/1), out_grad.shape));
    INTERP_RETURN_IF_ERROR(GatherSlices(ctx, slices, out_grad, *updates_grad));
  }
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr) return absl::OkStatus();
  return CopyUnlessShared(ctx, out_grad, *x_grad);
}

constexpr std::initializer_list<DType> kSummed = {DType::kFloat32, DType::kFloat64};
constexpr std::initializer_list<DType> kScattered = {DType::kFloat32, DType::kFloat64,
                                                     DType::kInt32, DType::kInt64};
constexpr std::initializer_list<DType> kAny = {DType::kUndefined};

INTERP_REGISTER_KERNELS("gather", RowsFor(kAny, GatherByAxis));
INTERP_REGISTER_KERNELS("index_select", RowsFor(kAny, IndexSelect));
INTERP_REGISTER_KERNELS("gather_grad", RowsFor(kSummed, GatherGrad<true>));
INTERP_REGISTER_KERNELS("index_select_grad", RowsFor(kSummed, GatherGrad<false>));
INTERP_REGISTER_KERNELS("lookup_table", RowsFor(kAny, Lookup));
INTERP_REGISTER_KERNELS("lookup_table_v2", RowsFor(kAny, Lookup));
INTERP_REGISTER_KERNELS("lookup_table_grad", RowsFor(kSummed, LookupGrad));
INTERP_REGISTER_KERNELS("lookup_table_v2_grad", RowsFor(kSummed, LookupGrad));
INTERP_REGISTER_KERNELS("scatter", RowsFor(kScattered, Scatter));
INTERP_REGISTER_KERNELS("scatter_grad", RowsFor(kScattered, ScatterGrad));
INTERP_REGISTER_KERNELS("gather_nd", RowsFor(kAny, GatherNd));
INTERP_REGISTER_KERNELS("gather_nd_grad", RowsFor(kSummed, GatherNdGrad));
INTERP_REGISTER_KERNELS("scatter_nd_add", RowsFor(kScattered, ScatterNdAdd));
INTERP_REGISTER_KERNELS("scatter_nd_add_grad", RowsFor(kAny, ScatterNdAddGrad));

}  // namespace
}  // namespace interp::cuda
