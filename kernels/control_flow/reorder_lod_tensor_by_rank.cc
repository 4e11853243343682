// reorder_lod_tensor_by_rank: Out = the sequences of X, of its highest LoD level, in the order of
// RankTable; rows where X has no LoD. The table may have been made of another tensor.
// reorder_lod_tensor_by_rank_grad: the inverse, with the same slots.
#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRankTable = 1;
constexpr int kOut = 0;

absl::Status ReorderByRank(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckHasRows(x));
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

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "reorder_lod_tensor_by_rank_grad",
                       {{"X", "Out@GRAD"}, {"RankTable", "RankTable"}}, {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "reorder_lod_tensor_by_rank",
    .inputs = {{"X"}, {"RankTable", kTensorArray}},
    .outputs = {{"Out"}},
    .kernels = {{DType::kUndefined, ReorderByRank}},
    .dynamic_outputs = true,
    .gradient = {.make = MakeGradient},
});

// X is the gradient of the sequences in the order of the table; Out has them as they were.
absl::Status ReorderBack(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckHasRows(x));
  INTERP_ASSIGN_OR_RETURN(const RankTable* const table, RankTableOf(ctx, kRankTable));
  const int64_t count = std::ssize(table->items);
  std::vector<int64_t> place(count, -1);  // by index: where the table has it
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = table->items[i].index;
    if (index < 0 || index >= count || place[index] >= 0) {
      return InvalidArgument("the rank table does not list each of ", count, " sequences once");
    }
    place[index] = i;
  }
  Lod lod;
  std::vector<RowRange> ranges;
  for (const int64_t at : place) {
    INTERP_ASSIGN_OR_RETURN(ranges.emplace_back(), AppendParts(x, /*level=*/0, at, at + 1, &lod));
  }
  ctx.output(kOut).lod = std::move(lod);
  return JoinRows(ctx, ranges, x, ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "reorder_lod_tensor_by_rank_grad",
    .inputs = {{"X"}, {"RankTable", kTensorArray}},
    .outputs = {{"Out"}},
    .kernels = {{DType::kUndefined, ReorderBack}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
