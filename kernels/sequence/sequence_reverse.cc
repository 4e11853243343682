// sequence_reverse: the rows of each sequence of X, the last one first.
#include <cstring>

#include "core/edit_op.h"
#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 0;

absl::Status InferSequenceReverse(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(ctx.input(kX), "X").status());
  ctx.ShareShape(kX, kY);
  return absl::OkStatus();
}

absl::Status SequenceReverse(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const auto row_bytes = RowSize(x) * static_cast<int64_t>(SizeOf(x.dtype));
  if (x.numel() == 0) return absl::OkStatus();
  const Offsets offsets = x.lod.back();
  const char* const in = static_cast<const char*>(x.raw_data());
  char* out = static_cast<char*>(ctx.output(kY).mutable_raw_data());
  for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
    for (int64_t row = offsets[i + 1] - 1; row >= offsets[i]; --row, out += row_bytes) {
      std::memcpy(out, in + row * row_bytes, row_bytes);
    }
  }
  return absl::OkStatus();
}

// Rows change places in pairs, so the gradient is the op itself.
absl::Status MakeGradient(GradientMaker& maker) {
  Op& op = maker.Add("sequence_reverse");
  AddInput(op, "X", maker.OutputGradients("Y"));
  AddOutput(op, "Y", maker.InputGradients("X"));
  op.attrs = maker.op().attrs;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_reverse",
    .inputs = {{"X"}},
    .outputs = {{"Y"}},
    .infer = InferSequenceReverse,
    .kernels = {{DType::kUndefined, SequenceReverse}},
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
