// lod_tensor_to_array: Out[t] = step t of every sequence of X that is longer than t, in the order
// of RankTable. A step is one part of the level below the ranked one: a row, or a sequence where X
// has finer levels, which the element then has as its LoD.
#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRankTable = 1;
constexpr int kOut = 0;

absl::Status MakeStep(const KernelContext& ctx, const RankTable& table, int64_t step,
                      std::vector<RowRange>& ranges, Tensor& out) {
  const Tensor& x = ctx.input(kX);
  const int64_t level = std::ssize(table.coarse);
  const std::vector<int64_t>& offsets = x.lod[level];
  ranges.clear();
  for (const RankTable::Item& item : table.items) {
    if (step >= item.length) break;
    const int64_t part = offsets[item.index] + step;
    INTERP_ASSIGN_OR_RETURN(ranges.emplace_back(),
                            AppendParts(x, level + 1, part, part + 1, &out.lod));
  }
  return JoinRows(ctx, ranges, x, out);
}

absl::Status CheckTable(const Tensor& x, const RankTable& table) {
  INTERP_RETURN_IF_ERROR(CheckHasRows(x));
  const int64_t level = std::ssize(table.coarse);
  if (level >= std::ssize(x.lod)) {
    return InvalidArgument("input 'X' has ", x.lod.size(), " LoD levels, expected more than ",
                           level, ", the level that the rank table ranks");
  }
  const int64_t parts = CountParts(x, level);
  for (const RankTable::Item& item : table.items) {
    if (item.index < parts) continue;
    return InvalidArgument("input 'X' has ", parts, " sequences, but the rank table has one of ",
                           "index ", item.index);
  }
  return absl::OkStatus();
}

absl::Status LodTensorToArray(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RankTable* const table, RankTableOf(ctx, kRankTable));
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckTable(x, *table));
  const int64_t length = table->items.empty() ? 0 : table->items.front().length;
  // The parts of X bound the steps: a table made for something else must not ask for gigabytes.
  const int64_t most = length == 0 ? 0 : x.lod[table->coarse.size()].back();
  if (length > most) {
    return InvalidArgument("the rank table has a sequence of ", length, " steps, input 'X' has ",
                           most);
  }
  std::vector<Tensor>& out = ctx.output_array(kOut);
  out.clear();
  out.resize(static_cast<size_t>(length));
  std::vector<RowRange> ranges;
  for (int64_t step = 0; step < length; ++step) {
    INTERP_RETURN_IF_ERROR(MakeStep(ctx, *table, step, ranges, out[step]));
  }
  return absl::OkStatus();
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "array_to_lod_tensor",
                       {{"X", "Out@GRAD"}, {"RankTable", "RankTable"}}, {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "lod_tensor_to_array",
    .inputs = {{"X"}, {"RankTable", kTensorArray}},
    .outputs = {{"Out", kTensorArray}},
    .infer = InferNothing,
    .kernels = {{DType::kUndefined, LodTensorToArray}},
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
