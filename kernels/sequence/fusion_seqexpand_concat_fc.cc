// fusion_seqexpand_concat_fc: Out = activation(X0, X1, ... side by side, times FCWeight, + FCBias),
// where each of the other X has a row for each sequence of X0 that stands beside all its rows, as
// Paddle's inference passes fuse it. The output that only its kernel needs is left empty.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/product/product.h"
#include "kernels/recurrent/activation.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/all_present.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kWeight = 1;
constexpr int kBias = 2;
constexpr int kOut = 0;
constexpr int kFcOut = 1;

struct Attrs {
  recurrent::CellActivation activation = recurrent::CellActivation::kIdentity;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {recurrent::ReadActivation(reader, "fc_activation", recurrent::CellActivation::kIdentity)};
}

// The columns of all X. InvalidArgument unless all but the first have `sequences` rows.
absl::StatusOr<int64_t> CheckWidths(const InferContext& ctx, int64_t sequences) {
  int64_t columns = 0;
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    const Shape& shape = ctx.inputs(kX)[i]->shape;
    if (shape.rank() != 2 || (i > 0 && shape[0] != sequences)) {
      return InvalidArgument("input 'X' has shape ", ToString(shape), ", expected a matrix of ",
                             sequences, " rows, the sequences of the first");
    }
    INTERP_ASSIGN_OR_RETURN(columns, CheckedSum(columns, shape[1]));
  }
  return columns;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(kX), "X"));
  if (ctx.inputs(kX).size() < 2) {
    return InvalidArgument("there are ", ctx.inputs(kX).size(), " inputs 'X', expected 2 or more");
  }
  const Tensor& first = *ctx.inputs(kX)[0];
  if (first.shape.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(first.shape), ", expected a matrix");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(first, "X"));
  INTERP_ASSIGN_OR_RETURN(const int64_t columns, CheckWidths(ctx, SequenceCount(offsets)));
  const Shape& weight = ctx.input(kWeight).shape;
  if (weight.rank() != 2 || weight[0] != columns) {
    return InvalidArgument("input 'FCWeight' has shape ", ToString(weight), ", expected ", columns,
                           " rows, the columns of all 'X'");
  }
  const Tensor* const bias = ctx.optional_input(kBias);
  if (bias != nullptr && bias->numel() != weight[1]) {
    return InvalidArgument("input 'FCBias' has shape ", ToString(bias->shape), ", expected ",
                           weight[1], " elements");
  }
  ctx.SetShape(kOut, {first.shape[0], weight[1]});
  ctx.output(kOut).lod = first.lod;
  ctx.SetShape(kFcOut, {0});
  return absl::OkStatus();
}

// All X but the first side by side, [sequences, columns].
template <typename T>
void JoinRows(absl::Span<const Tensor* const> xs, int64_t columns, T* out) {
  for (const Tensor* const x : xs.subspan(1)) {
    const int64_t width = x->shape[1];
    for (int64_t n = 0; n < x->shape[0]; ++n) {
      std::copy_n(x->data<T>() + n * width, width, out + n * columns);
    }
    out += width;
  }
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const Tensor& first = *ctx.inputs(kX)[0];
  const Offsets offsets = first.lod.back();
  const Tensor* const bias = ctx.optional_input(kBias);
  Tensor& out_tensor = ctx.output(kOut);
  T* const out = out_tensor.mutable_data<T>();
  const int64_t width = out_tensor.shape[1];
  const T* const weight = ctx.input(kWeight).data<T>();
  const nn::Product rows = nn::ProductOf(first.shape[0], width, first.shape[1]);
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, rows, first.data<T>(), weight,
                                           /*y_constant=*/false, DataOrNull<T>(bias), out));
  const nn::Product sequences =
      nn::ProductOf(SequenceCount(offsets), width, ctx.input(kWeight).shape[0] - rows.k);
  INTERP_ASSIGN_OR_RETURN(
      const int64_t bytes,
      CheckedProduct(sequences.m, (sequences.k + width) * static_cast<int64_t>(sizeof(T))));
  INTERP_ASSIGN_OR_RETURN(const Workspace memory, ctx.workspace(static_cast<size_t>(bytes)));
  T* const joined = memory.data<T>();
  T* const added = joined + sequences.m * sequences.k;
  JoinRows(ctx.inputs(kX), sequences.k, joined);
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, sequences, joined, weight + rows.k * width,
                                           /*y_constant=*/false, /*bias=*/nullptr, added));
  const auto activation = ctx.attrs<Attrs>().activation;
  ParallelFor(ctx.num_threads(), sequences.m, /*grain=*/4, [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      T* const to = out + offsets[n] * width;
      const int64_t count = (offsets[n + 1] - offsets[n]) * width;
      for (int64_t i = 0; i < count; ++i) to[i] += added[n * width + i % width];
      recurrent::Activate(activation, to, count);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fusion_seqexpand_concat_fc",
    .inputs = {{"X", kVariadic}, {"FCWeight"}, {"FCBias", kOptional}},
    .outputs = {{"Out"}, {"FCOut", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace
}  // namespace interp
