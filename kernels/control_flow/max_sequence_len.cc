// max_sequence_len: Out[0] = length of the longest sequence in RankTable, int64; 0 without any.
#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"

namespace interp {
namespace {

constexpr int kRankTable = 0;
constexpr int kOut = 0;

void InferMaxSequenceLenDType(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); }

absl::Status InferMaxSequenceLen(InferContext& ctx) {
  ctx.SetShape(kOut, {1});
  return absl::OkStatus();
}

absl::Status MaxSequenceLen(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RankTable* const table, RankTableOf(ctx, kRankTable));
  *ctx.output(kOut).mutable_data<int64_t>() =
      table->items.empty() ? 0 : table->items.front().length;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "max_sequence_len",
    .inputs = {{"RankTable", kTensorArray}},
    .outputs = {{"Out"}},
    .infer_dtype = InferMaxSequenceLenDType,
    .infer = InferMaxSequenceLen,
    .kernels = {{DType::kUndefined, MaxSequenceLen}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
