// sequence_pad_grad: the rows of Out@GRAD that are no padding. PadValue gets no gradient, as in
// Paddle.
// sequence_unpad_grad: the rows of Out@GRAD, a sequence each batch, and 0 behind them.
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status WrongBatch(const Tensor& batch, absl::string_view slot, int64_t count, int64_t longest,
                        int64_t row_size) {
  return InvalidArgument("input '", slot, "' has shape ", ToString(batch.shape), ", expected ",
                         count, " batches of at least ", longest, " rows of ", row_size,
                         " elements");
}

// Whether `batch` is [sequences, longest or more, ...] with rows of `row_size` elements.
bool IsBatchOf(const Tensor& batch, Offsets offsets, int64_t row_size) {
  const Shape& shape = batch.shape;
  return shape.rank() >= 2 && shape[0] == SequenceCount(offsets) &&
         shape[1] >= LongestSequence(offsets) && shape.numel(2, shape.rank()) == row_size;
}

absl::Status InferSequencePadGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  if (!IsBatchOf(ctx.input(kOutGrad), offsets, RowSize(x))) {
    return WrongBatch(ctx.input(kOutGrad), "Out@GRAD", SequenceCount(offsets),
                      LongestSequence(offsets), RowSize(x));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status InferSequenceUnpadGrad(InferContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(grad, "Out@GRAD"));
  if (!IsBatchOf(ctx.input(kX), offsets, RowSize(grad))) {
    return WrongBatch(ctx.input(kX), "X", SequenceCount(offsets), LongestSequence(offsets),
                      RowSize(grad));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status SequencePadGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Tensor& grad = ctx.input(kOutGrad);
  const Offsets offsets = ctx.input(kX).lod.back();
  const auto row_bytes = RowSize(*x_grad) * static_cast<int64_t>(SizeOf(grad.dtype));
  const char* in = static_cast<const char*>(grad.raw_data());
  char* const out = static_cast<char*>(x_grad->mutable_raw_data());
  for (int64_t i = 0; i < SequenceCount(offsets); ++i, in += grad.shape[1] * row_bytes) {
    std::memcpy(out + offsets[i] * row_bytes, in, (offsets[i + 1] - offsets[i]) * row_bytes);
  }
  return absl::OkStatus();
}

absl::Status SequenceUnpadGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Tensor& grad = ctx.input(kOutGrad);
  const Offsets offsets = grad.lod.back();
  const auto row_bytes = RowSize(grad) * static_cast<int64_t>(SizeOf(grad.dtype));
  const int64_t batch_bytes = x_grad->shape[1] * row_bytes;
  const char* const in = static_cast<const char*>(grad.raw_data());
  char* out = static_cast<char*>(x_grad->mutable_raw_data());
  for (int64_t i = 0; i < SequenceCount(offsets); ++i, out += batch_bytes) {
    const int64_t bytes = (offsets[i + 1] - offsets[i]) * row_bytes;
    if (bytes > 0) std::memcpy(out, in + offsets[i] * row_bytes, bytes);
    std::memset(out + bytes, 0, batch_bytes - bytes);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_pad_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .infer = InferSequencePadGrad,
    .kernels = {{DType::kUndefined, SequencePadGrad}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_unpad_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .infer = InferSequenceUnpadGrad,
    .kernels = {{DType::kUndefined, SequenceUnpadGrad}},
});

}  // namespace
}  // namespace interp
