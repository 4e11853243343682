// array_to_lod_tensor: the inverse of lod_tensor_to_array. Out = the sequences whose steps lie in
// the array X, in their order before the ranking. Its LoD has the levels above the ranked one, then
// the lengths of the sequences, then the levels of the elements.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRankTable = 1;
constexpr int kOut = 0;

// Positions in the table by the index of the sequence.
std::vector<size_t> InOriginalOrder(const RankTable& table) {
  std::vector<size_t> positions(table.items.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = i;
  std::sort(positions.begin(), positions.end(),
            [&](size_t a, size_t b) { return table.items[a].index < table.items[b].index; });
  return positions;
}

absl::Status CheckElements(const std::vector<Tensor>& array, const RankTable& table) {
  if (array.empty()) return InvalidArgument("the array 'X' has no elements");
  for (size_t i = 0; i < array.size(); ++i) {
    if (!array[i].has_memory() && array[i].numel() != 0) {
      return NotFound("element ", i, " of the array 'X' has no value: nothing has written it");
    }
    INTERP_RETURN_IF_ERROR(CheckHasRows(array[i]));
  }
  const int64_t length = table.items.empty() ? 0 : table.items.front().length;
  if (length <= std::ssize(array)) return absl::OkStatus();
  return InvalidArgument("the rank table has a sequence of ", length, " steps, the array 'X' has ",
                         array.size(), " elements");
}

absl::Status ArrayToLodTensor(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RankTable* const table, RankTableOf(ctx, kRankTable));
  const std::vector<Tensor>& array = ctx.input_array(kX);
  INTERP_RETURN_IF_ERROR(CheckElements(array, *table));
  Lod fine;
  std::vector<int64_t> lengths = {0};
  std::vector<RowRange> ranges;
  for (const size_t position : InOriginalOrder(*table)) {
    const int64_t length = table->items[position].length;
    lengths.push_back(lengths.back() + length);
    const auto part = static_cast<int64_t>(position);
    for (int64_t step = 0; step < length; ++step) {
      INTERP_ASSIGN_OR_RETURN(ranges.emplace_back(),
                              AppendParts(array[step], /*level=*/0, part, part + 1, &fine));
    }
  }
  Tensor& out = ctx.output(kOut);
  out.lod = table->coarse;
  out.lod.push_back(std::move(lengths));
  out.lod.insert(out.lod.end(), fine.begin(), fine.end());
  return JoinRows(ctx, ranges, array[0], out);
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "lod_tensor_to_array",
                       {{"X", "Out@GRAD"}, {"RankTable", "RankTable"}}, {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "array_to_lod_tensor",
    .inputs = {{"X", kTensorArray}, {"RankTable", kTensorArray}},
    .outputs = {{"Out"}},
    .kernels = {{DType::kUndefined, ArrayToLodTensor}},
    .dynamic_outputs = true,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
