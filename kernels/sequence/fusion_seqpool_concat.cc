// fusion_seqpool_concat: the sum, average or sum / sqrt(length) over the rows of each sequence, of
// all X side by side, as Paddle's inference passes fuse it. Empty sequences give 0.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/sequence_pool_attrs.h"
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

template <typename T>
void PoolSequence(Pooling pooling, const T* rows, int64_t count, int64_t width, T* out) {
  std::fill_n(out, width, T{0});
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t k = 0; k < width; ++k) out[k] += rows[row * width + k];
  }
  if (pooling == Pooling::kSum || count == 0) return;
  const T length = static_cast<T>(count);
  const T factor = T{1} / (pooling == Pooling::kAverage ? length : std::sqrt(length));
  for (int64_t k = 0; k < width; ++k) out[k] *= factor;
}

template <typename T>
absl::Status SeqpoolConcat(KernelContext& ctx) {
  const Pooling pooling = ctx.attrs<SequencePoolAttrs>().pooling;
  Tensor& out = ctx.output(kOut);
  int64_t column = 0;
  for (const Tensor* const x : ctx.inputs(kX)) {
    const std::vector<int64_t>& offsets = x->lod.back();
    const int64_t width = x->shape[1];
    for (int64_t n = 0; n < out.shape[0]; ++n) {
      PoolSequence(pooling, x->data<T>() + offsets[n] * width, offsets[n + 1] - offsets[n], width,
                   out.mutable_data<T>() + n * out.shape[1] + column);
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
    .kernels = {{DType::kFloat32, SeqpoolConcat<float>}, {DType::kFloat64, SeqpoolConcat<double>}},
});

}  // namespace
}  // namespace interp
