// lod_rank_table: Out = the sequences of X at `level` of its LoD, longest first, those of one
// length in their order. Only the LoD of X is read.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct RankTableAttrs {
  int32_t level = 0;
};

RankTableAttrs ReadRankTableAttrs(AttrReader& reader) {
  const RankTableAttrs attrs = {reader.Int("level", 0)};
  if (attrs.level < 0) reader.Fail("attribute 'level' is negative");
  return attrs;
}

absl::Status LodRankTable(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const int32_t level = ctx.attrs<RankTableAttrs>().level;
  if (level >= std::ssize(x.lod)) {
    return InvalidArgument("input 'X' is ", DescribeType(x), " with ", x.lod.size(),
                           " LoD levels, expected more than ", level, ", the level to rank");
  }
  auto table = std::make_unique<RankTable>();
  table->coarse.assign(x.lod.begin(), x.lod.begin() + level);
  const Offsets offsets = x.lod[level];
  for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    if (length < 0) return InvalidArgument("the LoD of input 'X' has descending offsets");
    table->items.push_back({.index = i, .length = length});
  }
  const auto longer = [](const RankTable::Item& a, const RankTable::Item& b) {
    return a.length > b.length;
  };
  std::stable_sort(table->items.begin(), table->items.end(), longer);
  ctx.output_variable(kOut).rank_table = std::move(table);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lod_rank_table",
    .inputs = {{"X", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Out", kTensorArray}},
    .parse = ParseAttrs<RankTableAttrs, ReadRankTableAttrs>,
    .infer = InferNothing,
    .kernels = {{DType::kUndefined, LodRankTable}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
