// fusion_seqpool_concat: the sum, average or sum / sqrt(length) over the rows of each sequence, of
// all X side by side, as Paddle's inference passes fuse it. Empty sequences give 0.
// fusion_seqpool_cvm_concat: the same of rows that start with a show and a click count, which
// become those of cvm. CVM serves a gradient alone.
#include <numeric>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/pool_sequence.h"
#include "kernels/tensor/cvm.h"
#include "kernels/util/all_present.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

SequencePoolAttrs ReadAttrs(AttrReader& reader) {
  SequencePoolAttrs attrs;
  attrs.pooling = Pooling::kSum;
  if (reader.Has("pooltype")) attrs = ReadSequencePoolAttrs(reader);
  if (attrs.pooling != Pooling::kSum && attrs.pooling != Pooling::kAverage &&
      attrs.pooling != Pooling::kSqrt) {
    reader.Fail("attribute 'pooltype' is neither SUM, AVERAGE nor SQRT");
  }
  const int32_t axis = reader.Int("axis", 1);
  if (axis != 1) reader.Fail(absl::StrCat("attribute 'axis' is ", axis, ", expected 1"));
  return attrs;
}

SequencePoolAttrs ReadCvmAttrs(AttrReader& reader) {
  if (!reader.Bool("use_cvm", true)) {
    reader.Fail("attribute 'use_cvm' is false, expected true");
  }
  return ReadAttrs(reader);
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(kX), "X"));
  int64_t sequences = -1, columns = 0;
  for (const Tensor* const x : ctx.inputs(kX)) {
    if (x->shape.rank() != 2) {
      return InvalidArgument("input 'X' has shape ", ToString(x->shape), ", expected a matrix");
    }
    INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(*x, "X"));
    if (sequences >= 0 && SequenceCount(offsets) != sequences) {
      return InvalidArgument("inputs 'X' have ", sequences, " and ", SequenceCount(offsets),
                             " sequences, expected as many");
    }
    sequences = SequenceCount(offsets);
    columns += x->shape[1];
  }
  if (sequences < 0) return InvalidArgument("there is no input 'X'");
  ctx.SetShape(kOut, {sequences, columns});
  // As in Paddle, each row is a sequence of its own.
  std::vector<int64_t> rows(static_cast<size_t>(sequences) + 1);
  std::iota(rows.begin(), rows.end(), int64_t{0});
  ctx.output(kOut).lod = {std::move(rows)};
  return absl::OkStatus();
}

absl::Status InferCvm(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(Infer(ctx));
  for (const Tensor* const x : ctx.inputs(kX)) {
    if (x->shape[1] >= kCvmCounts) continue;
    return InvalidArgument("input 'X' has shape ", ToString(x->shape),
                           ", expected [rows, 2 or more]");
  }
  return absl::OkStatus();
}

template <typename T, bool kCvm>
absl::Status SeqpoolConcat(KernelContext& ctx) {
  const Pooling pooling = ctx.attrs<SequencePoolAttrs>().pooling;
  Tensor& out = ctx.output(kOut);
  int64_t column = 0;
  for (const Tensor* const x : ctx.inputs(kX)) {
    const std::vector<int64_t>& offsets = x->lod.back();
    const int64_t width = x->shape[1];
    for (int64_t n = 0; n < out.shape[0]; ++n) {
      T* const to = out.mutable_data<T>() + n * out.shape[1] + column;
      PoolSequence(pooling, x->data<T>() + offsets[n] * width, offsets[n + 1] - offsets[n], width,
                   to);
      if (kCvm) LogCounts(to, to);
    }
    column += width;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fusion_seqpool_concat",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequencePoolAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, SeqpoolConcat<float, false>},
                {DType::kFloat64, SeqpoolConcat<double, false>}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "fusion_seqpool_cvm_concat",
    .inputs = {{"X", kVariadic}, {"CVM", kNoNeedBuffer | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequencePoolAttrs, ReadCvmAttrs>,
    .infer = InferCvm,
    .kernels = {{DType::kFloat32, SeqpoolConcat<float, true>},
                {DType::kFloat64, SeqpoolConcat<double, true>}},
});

}  // namespace
}  // namespace interp
