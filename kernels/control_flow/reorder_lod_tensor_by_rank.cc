// reorder_lod_tensor_by_rank: Out = the sequences of X, of its highest LoD level, in the order of
// RankTable; rows where X has no LoD. The table may have been made of another tensor.
#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRankTable = 1;
constexpr int kOut = 0;

absl::Status ReorderByRank(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckHasRows(x, "X"));
  INTERP_ASSIGN_OR_RETURN(const RankTable* const table, RankTableOf(ctx, kRankTable));
  Lod lod;
  std::vector<RowRange> ranges;
  for (const RankTable::Item& item : table->items) {
    INTERP_ASSIGN_OR_RETURN(ranges.emplace_back(),
                            AppendParts(x, /*level=*/0, item.index, item.index + 1, &lod));
  }
  ctx.output(kOut).lod = std::move(lod);
  return JoinRows(ctx, ranges, x, ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "reorder_lod_tensor_by_rank",
    .inputs = {{"X"}, {"RankTable", kTensorArray}},
    .outputs = {{"Out"}},
    .kernels = {{DType::kUndefined, ReorderByRank}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
