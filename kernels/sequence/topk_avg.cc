#include "kernels/sequence/topk_avg.h"

#include <algorithm>

#include "kernels/util/shape_args.h"

namespace interp::topk_avg {
namespace {

absl::Status CheckItems(Offsets x, Offsets rows, Offsets columns, int64_t channels) {
  if (x.size() != rows.size() || x.size() != columns.size()) {
    return InvalidArgument("inputs 'X', 'ROW' and 'COLUMN' have ", SequenceCount(x), ", ",
                           SequenceCount(rows), " and ", SequenceCount(columns),
                           " sequences, expected equal numbers");
  }
  for (int64_t i = 0; i < SequenceCount(x); ++i) {
    INTERP_ASSIGN_OR_RETURN(int64_t expected,
                            CheckedProduct(rows[i + 1] - rows[i], columns[i + 1] - columns[i]));
    INTERP_ASSIGN_OR_RETURN(expected, CheckedProduct(expected, channels));
    if (x[i + 1] - x[i] != expected) {
      return InvalidArgument("sequence ", i, " of input 'X' has ", x[i + 1] - x[i],
                             " elements, expected ", expected,
                             ": 'channel_num' times the rows of 'ROW' times those of 'COLUMN'");
    }
  }
  return absl::OkStatus();
}

}  // namespace

TopkAvgAttrs ReadTopkAvgAttrs(AttrReader& reader) {
  TopkAvgAttrs attrs = {reader.Ints("topks"), reader.Int("channel_num", 0)};
  if (attrs.channels < 1) {
    reader.Fail(absl::StrCat("'channel_num' is ", attrs.channels, ", expected at least 1"));
  }
  const auto [least, most] = std::minmax_element(attrs.topks.begin(), attrs.topks.end());
  if (attrs.topks.empty() || *least < 1 || *most != attrs.topks.back()) {
    reader.Fail("'topks' must list counts of at least 1, the largest as the last");
    attrs.topks = {1};
  }
  return attrs;
}

absl::StatusOr<int64_t> CheckMatrices(const OpContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  INTERP_ASSIGN_OR_RETURN(const Offsets rows, OnlyLevelOffsets(ctx.input(kRow), "ROW"));
  INTERP_ASSIGN_OR_RETURN(const Offsets columns, OnlyLevelOffsets(ctx.input(kColumn), "COLUMN"));
  if (RowSize(x) != 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected rows of one element");
  }
  INTERP_RETURN_IF_ERROR(CheckItems(offsets, rows, columns, ctx.attrs<TopkAvgAttrs>().channels));
  return rows.back();
}

}  // namespace interp::topk_avg
