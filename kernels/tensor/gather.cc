// gather: Out = the entries of X that Index lists, along `axis`; the input Axis wins over the
// attribute. An Index of shape [k, 1] counts as [k]; a 0-D one drops the dimension.
// index_select: the same with attribute `dim` and an Index of rank 1.
#include "kernels/tensor/gather.h"

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kIndex = 1;
constexpr int kAxis = 2;
constexpr int kOut = 0;

absl::Status CheckIndexShape(const Tensor& index) {
  const Shape& shape = index.shape;
  if (shape.rank() <= 1 || (shape.rank() == 2 && shape[1] == 1)) return absl::OkStatus();
  return InvalidArgument("'Index' has shape ", ToString(shape), ", expected rank 0 or 1, or [k,1]");
}

absl::Status SetGatherShape(InferContext& ctx, int axis) {
  const Tensor& x = ctx.input(kX);
  const Tensor& index = ctx.input(kIndex);
  INTERP_RETURN_IF_ERROR(CheckIndexShape(index));
  Shape shape;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (i != axis) {
      shape.push_back(x.shape[i]);
    } else if (index.shape.rank() > 0) {
      shape.push_back(index.shape[0]);
    }
  }
  ctx.SetShape(kOut, shape);
  const bool same_rows = shape.rank() > 0 && shape[0] == x.shape[0];
  if (same_rows) ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

absl::Status GatherAlong(KernelContext& ctx, int axis) {
  const Tensor& x = ctx.input(kX);
  const Tensor& index = ctx.input(kIndex);
  const RowBlocks blocks = {
      .outer = x.shape.numel(0, axis),
      .rows = x.shape[axis],
      .row_bytes = x.shape.numel(axis + 1, x.shape.rank()) * static_cast<int64_t>(SizeOf(x.dtype))};
  return WithIndices(index, "Index", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, index.numel(), blocks.rows, "Index"));
    GatherRows(ctx.num_threads(), blocks, x.raw_data(), values, index.numel(),
               ctx.output(kOut).mutable_raw_data());
    return absl::OkStatus();
  });
}

absl::Status InferGather(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int axis, GatherAxis(ctx, kX, kAxis));
  return SetGatherShape(ctx, axis);
}

absl::Status Gather(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int axis, GatherAxis(ctx, kX, kAxis));
  return GatherAlong(ctx, axis);
}

INTERP_REGISTER_OP(OpDef{
    .type = "gather",
    .inputs = {{"X"}, {"Index", kAnyDType}, {"Axis", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<GatherAttrs, ReadGatherAttrs>,
    .infer = InferGather,
    .kernels = {{DType::kUndefined, Gather}},
    .gradient = {.inputs = {"X", "Index", "Axis", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

absl::Status InferIndexSelect(InferContext& ctx) {
  const Shape& index = ctx.input(kIndex).shape;
  if (index.rank() != 1) {
    return InvalidArgument("'Index' has shape ", ToString(index), ", expected rank 1");
  }
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(ctx.attrs<GatherAttrs>().axis,
                                                      ctx.input(kX).shape.rank(), "dim"));
  return SetGatherShape(ctx, axis);
}

absl::Status IndexSelect(KernelContext& ctx) {
  return GatherAlong(ctx,
                     *NormalizeAxis(ctx.attrs<GatherAttrs>().axis, ctx.input(kX).shape.rank()));
}

INTERP_REGISTER_OP(OpDef{
    .type = "index_select",
    .inputs = {{"X"}, {"Index", kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<GatherAttrs, ReadSelectAttrs>,
    .infer = InferIndexSelect,
    .kernels = {{DType::kUndefined, IndexSelect}},
    .gradient = {.inputs = {"X", "Index", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
