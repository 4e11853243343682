// shrink_rnn_memory: Out = the first rows of X, one (or one sequence, where X has a LoD) for each
// sequence in RankTable that is longer than I steps. Out shares the memory of X.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRankTable = 1;
constexpr int kI = 2;
constexpr int kOut = 0;

absl::Status ShrinkRnnMemory(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckHasRows(x));
  INTERP_ASSIGN_OR_RETURN(const RankTable* const table, RankTableOf(ctx, kRankTable));
  INTERP_ASSIGN_OR_RETURN(const int64_t step, IndexOf(ctx.input(kI), "I"));
  const auto ended =
      std::partition_point(table->items.begin(), table->items.end(),
                           [step](const RankTable::Item& item) { return item.length > step; });
  const int64_t count = ended - table->items.begin();
  Lod lod;
  RowRange kept = {.tensor = &x, .begin = 0, .end = count};
  // A LoD of fewer sequences is not that of the batch: rows are counted.
  if (!x.lod.empty() && CountParts(x, 0) >= count) {
    INTERP_ASSIGN_OR_RETURN(kept, AppendParts(x, /*level=*/0, 0, count, &lod));
  }
  if (kept.end > x.shape[0]) {
    return InvalidArgument("input 'X' is ", DescribeType(x), ", but ", kept.end,
                           " sequences are longer than ", step, " steps");
  }
  Tensor& out = ctx.output(kOut);
  out = x;
  out.shape[0] = kept.end;
  out.lod = std::move(lod);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "shrink_rnn_memory",
    .inputs = {{"X"}, {"RankTable", kTensorArray}, {"I", kAnyDType}},
    .outputs = {{"Out"}},
    .kernels = {{DType::kUndefined, ShrinkRnnMemory}},
    .dynamic_outputs = true,
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
