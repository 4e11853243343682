// Rows of ops over the sequences of a LoD: pooling, softmax, repeats, orders, padding. Offsets lie
// on the host and go to the GPU with the work that needs them.
#include <algorithm>
#include <vector>

#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/sequence_copy.h"
#include "kernels/cuda/sequence_pool.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/repeat_level.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/data_or_null.h"

namespace interp::cuda {
namespace {

using Numbers = std::vector<int64_t>;

PackedSequences Packed(Offsets offsets, const NumberLists& numbers, int64_t width) {
  return {numbers.list(0), SequenceCount(offsets), offsets.back(), width};
}

// Moves sequences of rows as large as those of `like`.
absl::Status Move(const KernelContext& ctx, const Tensor& like, Offsets offsets,
                  const Numbers& starts, SequenceCopy copy) {
  if (offsets.back() == 0 || RowSize(like) == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {offsets, starts}));
  copy.offsets = numbers.list(0);
  copy.starts = numbers.list(1);
  copy.count = SequenceCount(offsets);
  copy.rows = offsets.back();
  copy.row_bytes = RowSize(like) * static_cast<int64_t>(SizeOf(like.dtype));
  return CopySequences(copy, StreamOf(ctx));
}

// X -> Out, MaxIndex.
absl::Status Pool(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SequencePoolAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  Tensor& out = ctx.output(/*slot=*/0);
  if (out.numel() == 0) return absl::OkStatus();
  Tensor* const index = attrs.with_index ? ctx.optional_output(/*slot=*/1) : nullptr;
  const Offsets offsets = x.lod.back();
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {offsets}));
  return PoolSequences(x.dtype, Packed(offsets, numbers, RowSize(x)),
                       {.pooling = attrs.pooling,
                        .pad_value = attrs.pad_value,
                        .x = x.raw_data(),
                        .out = out.mutable_raw_data(),
                        .max_index = DataOrNull<int32_t>(index)},
                       StreamOf(ctx));
}

// X, MaxIndex, Out@GRAD -> X@GRAD.
absl::Status PoolGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Pooling pooling = ctx.attrs<SequencePoolAttrs>().pooling;
  const Offsets offsets = ctx.input(/*slot=*/0).lod.back();
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {offsets}));
  return PoolSequencesGradient(
      x_grad->dtype, Packed(offsets, numbers, RowSize(*x_grad)),
      {.pooling = pooling,
       .out_grad = ctx.input(/*slot=*/2).raw_data(),
       .max_index = pooling == Pooling::kMax ? ctx.input(/*slot=*/1).data<int32_t>() : nullptr,
       .x_grad = x_grad->mutable_raw_data()},
      StreamOf(ctx));
}

// X -> Out.
absl::Status Softmax(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  const Offsets offsets = x.lod.back();
  if (x.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {offsets}));
  return SoftmaxOfSequences(x.dtype, Packed(offsets, numbers, /*width=*/1),
                            LongestSequence(offsets), x.raw_data(),
                            ctx.output(/*slot=*/0).mutable_raw_data(), StreamOf(ctx));
}

// X, Out, Out@GRAD -> X@GRAD.
absl::Status SoftmaxGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Offsets offsets = ctx.input(/*slot=*/0).lod.back();
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {offsets}));
  return SoftmaxOfSequencesGradient(x_grad->dtype, Packed(offsets, numbers, /*width=*/1),
                                    LongestSequence(offsets), ctx.input(/*slot=*/1).raw_data(),
                                    ctx.input(/*slot=*/2).raw_data(), x_grad->mutable_raw_data(),
                                    StreamOf(ctx));
}

// The offsets of the rows of `x`, each a sequence.
Numbers OffsetsOfRows(const Tensor& x) {
  Numbers offsets(x.shape[0] + 1);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int64_t>(i);
  return offsets;
}

// Where all copies of each sequence of X begin in Out, and their end.
Numbers StartsOfCopies(Offsets x, Offsets repeats) {
  Numbers starts = {0};
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    starts.push_back(starts.back() + (repeats[i + 1] - repeats[i]) * (x[i + 1] - x[i]));
  }
  return starts;
}

// X -> Out.
absl::Status ExpandBy(const KernelContext& ctx, const Numbers& x_offsets, Offsets repeats) {
  const Tensor& x = ctx.input(/*slot=*/0);
  return Move(ctx, x, StartsOfCopies(x_offsets, repeats), x_offsets,
              {.from = x.raw_data(),
               .to = ctx.output(/*slot=*/0).mutable_raw_data(),
               .order = SequenceOrder::kRepeat});
}
absl::Status Expand(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Offsets repeats, RepeatLevel(ctx, /*slot=*/1));
  const Tensor& x = ctx.input(/*slot=*/0);
  return ExpandBy(ctx, x.lod.empty() ? OffsetsOfRows(x) : x.lod.back(), repeats);
}
absl::Status ExpandAs(KernelContext& ctx) {
  return ExpandBy(ctx, OffsetsOfRows(ctx.input(/*slot=*/0)), ctx.input(/*slot=*/1).lod.back());
}

// X, Y, Out@GRAD -> X@GRAD.
absl::Status ExpandGradBy(KernelContext& ctx, const Numbers& x_offsets, Offsets repeats) {
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(
      const auto numbers,
      NumberLists::Make(ctx, {x_offsets, StartsOfCopies(x_offsets, repeats), repeats}));
  return SumSequenceCopies(x_grad->dtype, Packed(x_offsets, numbers, RowSize(*x_grad)),
                           {.out_starts = numbers.list(1),
                            .repeats = numbers.list(2),
                            .out_grad = ctx.input(/*slot=*/2).raw_data(),
                            .x_grad = x_grad->mutable_raw_data()},
                           StreamOf(ctx));
}
absl::Status ExpandGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Offsets repeats, RepeatLevel(ctx, /*slot=*/1));
  const Tensor& x = ctx.input(/*slot=*/0);
  return ExpandGradBy(ctx, x.lod.empty() ? OffsetsOfRows(x) : x.lod.back(), repeats);
}
absl::Status ExpandAsGrad(KernelContext& ctx) {
  return ExpandGradBy(ctx, OffsetsOfRows(ctx.input(/*slot=*/0)), ctx.input(/*slot=*/1).lod.back());
}

// X -> Y.
absl::Status Reverse(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  const Offsets offsets = x.lod.back();
  Numbers last_rows(offsets.begin() + 1, offsets.end());
  for (int64_t& row : last_rows) --row;
  return Move(ctx, x, offsets, last_rows,
              {.from = x.raw_data(),
               .to = ctx.output(/*slot=*/0).mutable_raw_data(),
               .order = SequenceOrder::kBackward});
}

// Calls move(k, starts) for each input k of sequence_concat, whose sequences begin at rows `starts`
// of the result.
template <typename MoveInput>
absl::Status ForEachInput(absl::Span<const Tensor* const> inputs, const MoveInput& move) {
  Numbers starts(inputs[0]->lod.back().size(), 0);
  for (const Tensor* x : inputs) {
    for (size_t i = 0; i < starts.size(); ++i) starts[i] += x->lod.back()[i];
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Numbers& offsets = inputs[k]->lod.back();
    INTERP_RETURN_IF_ERROR(move(k, starts));
    for (size_t i = 0; i + 1 < offsets.size(); ++i) starts[i] += offsets[i + 1] - offsets[i];
  }
  return absl::OkStatus();
}

// X... -> Out.
absl::Status Concat(KernelContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(/*slot=*/0);
  return ForEachInput(inputs, [&](size_t k, const Numbers& starts) {
    return Move(ctx, *inputs[k], inputs[k]->lod.back(), starts,
                {.from = inputs[k]->raw_data(),
                 .to = ctx.output(/*slot=*/0).mutable_raw_data(),
                 .to_packed = false});
  });
}

// X..., Out@GRAD -> X@GRAD...
absl::Status ConcatGrad(KernelContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(/*slot=*/0);
  const absl::Span<Tensor* const> grads = ctx.outputs(/*slot=*/0);
  if (grads.empty()) return absl::OkStatus();
  return ForEachInput(inputs, [&](size_t k, const Numbers& starts) {
    if (grads[k] == nullptr) return absl::OkStatus();
    return Move(ctx, *grads[k], inputs[k]->lod.back(), starts,
                {.from = ctx.input(/*slot=*/1).raw_data(), .to = grads[k]->mutable_raw_data()});
  });
}

// The rows of a batch [N,L,...] where its sequences begin.
Numbers StartsInBatch(const Tensor& batch) {
  Numbers starts(batch.shape[0]);
  for (size_t i = 0; i < starts.size(); ++i) starts[i] = static_cast<int64_t>(i) * batch.shape[1];
  return starts;
}

// X, Length -> Out.
absl::Status Unpad(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  Tensor& out = ctx.output(/*slot=*/0);
  return Move(ctx, out, out.lod.back(), StartsInBatch(x),
              {.from = x.raw_data(), .to = out.mutable_raw_data()});
}

// X, Out@GRAD -> X@GRAD.
absl::Status UnpadGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Tensor& grad = ctx.input(/*slot=*/1);
  INTERP_RETURN_IF_ERROR(FillZero(ctx, *x_grad));
  return Move(ctx, grad, grad.lod.back(), StartsInBatch(*x_grad),
              {.from = grad.raw_data(), .to = x_grad->mutable_raw_data(), .to_packed = false});
}

// X, PadValue -> Out, Length.
absl::Status Pad(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  const Tensor& value = ctx.input(/*slot=*/1);
  Tensor& out = ctx.output(/*slot=*/0);
  const Offsets offsets = x.lod.back();
  if (Tensor* const lengths = ctx.optional_output(/*slot=*/1)) {
    Numbers values(offsets.begin() + 1, offsets.end());
    for (size_t i = 0; i < values.size(); ++i) values[i] -= offsets[i];
    INTERP_RETURN_IF_ERROR(StoreNumbers(ctx, values, lengths->mutable_data<int64_t>()));
  }
  if (out.numel() == 0) return absl::OkStatus();
  const int64_t width = RowSize(x);
  INTERP_RETURN_IF_ERROR(CopyStrided(
      ctx, CopyDims{{out.numel() / width, 0, width}, {width, value.numel() == 1 ? 0 : 1, 1}},
      {value}, {out}));
  return Move(ctx, x, offsets, StartsInBatch(out),
              {.from = x.raw_data(), .to = out.mutable_raw_data(), .to_packed = false});
}

// X, Out@GRAD -> X@GRAD.
absl::Status PadGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Tensor& grad = ctx.input(/*slot=*/1);
  return Move(ctx, *x_grad, ctx.input(/*slot=*/0).lod.back(), StartsInBatch(grad),
              {.from = grad.raw_data(), .to = x_grad->mutable_raw_data()});
}

constexpr std::initializer_list<DType> kComputed = {DType::kFloat32, DType::kFloat64};
constexpr std::initializer_list<DType> kMoved = {DType::kUndefined};

INTERP_REGISTER_KERNELS("sequence_pool", RowsFor(kComputed, Pool));
INTERP_REGISTER_KERNELS("sequence_pool_grad", RowsFor(kComputed, PoolGrad));
INTERP_REGISTER_KERNELS("sequence_softmax", RowsFor(kComputed, Softmax));
INTERP_REGISTER_KERNELS("sequence_softmax_grad", RowsFor(kComputed, SoftmaxGrad));
INTERP_REGISTER_KERNELS("sequence_expand", RowsFor(kMoved, Expand));
INTERP_REGISTER_KERNELS("sequence_expand_grad", RowsFor(kComputed, ExpandGrad));
INTERP_REGISTER_KERNELS("sequence_expand_as", RowsFor(kMoved, ExpandAs));
INTERP_REGISTER_KERNELS("sequence_expand_as_grad", RowsFor(kComputed, ExpandAsGrad));
INTERP_REGISTER_KERNELS("sequence_reverse", RowsFor(kMoved, Reverse));
INTERP_REGISTER_KERNELS("sequence_concat", RowsFor(kMoved, Concat));
INTERP_REGISTER_KERNELS("sequence_concat_grad", RowsFor(kMoved, ConcatGrad));
INTERP_REGISTER_KERNELS("sequence_pad", RowsFor(kMoved, Pad));
INTERP_REGISTER_KERNELS("sequence_pad_grad", RowsFor(kMoved, PadGrad));
INTERP_REGISTER_KERNELS("sequence_unpad", RowsFor(kMoved, Unpad));
INTERP_REGISTER_KERNELS("sequence_unpad_grad", RowsFor(kMoved, UnpadGrad));

}  // namespace
}  // namespace interp::cuda
