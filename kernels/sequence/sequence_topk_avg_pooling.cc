// sequence_topk_avg_pooling: item i of X is `channel_num` matrices of as many rows as sequence i of
// ROW and as many columns as sequence i of COLUMN have rows. For each row of a matrix and each k of
// `topks`, Out has the sum of its k largest elements, divided by k even where it has fewer. pos has
// their columns, the largest element first, filled up with -1.
//
// Not in Paddle 2.6.2, but in its releases 1.6 to 2.4.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRow = 1;
constexpr int kColumn = 2;
constexpr int kOut = 0;
constexpr int kPos = 1;

struct TopkAvgAttrs {
  std::vector<int64_t> topks;
  int64_t channels = 1;

  int64_t largest() const { return topks.back(); }
};

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

void InferDTypes(DTypeContext& ctx) { ctx.Set(kPos, DType::kInt32); }

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

absl::Status InferTopkAvg(InferContext& ctx) {
  const auto& attrs = ctx.attrs<TopkAvgAttrs>();
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  INTERP_ASSIGN_OR_RETURN(const Offsets rows, OnlyLevelOffsets(ctx.input(kRow), "ROW"));
  INTERP_ASSIGN_OR_RETURN(const Offsets columns, OnlyLevelOffsets(ctx.input(kColumn), "COLUMN"));
  if (RowSize(x) != 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected rows of one element");
  }
  INTERP_RETURN_IF_ERROR(CheckItems(offsets, rows, columns, attrs.channels));
  INTERP_ASSIGN_OR_RETURN(const int64_t lines, CheckedProduct(rows.back(), attrs.channels));
  INTERP_ASSIGN_OR_RETURN(const int64_t positions, CheckedProduct(lines, attrs.largest()));
  ctx.SetShape(kOut, {rows.back(), attrs.channels * std::ssize(attrs.topks)});
  ctx.output(kOut).lod = ctx.input(kRow).lod;
  ctx.SetShape(kPos, {positions});
  return absl::OkStatus();
}

// Where one row of a matrix is and where its results go.
struct Line {
  const float* values;
  int64_t length;
  float* averages;
  int32_t* positions;  // may be null
};

// `order` and `sums` are scratch.
void PoolLine(const std::vector<int64_t>& topks, const Line& line, std::vector<int32_t>& order,
              std::vector<float>& sums) {
  const int64_t most = std::min(topks.back(), line.length);
  order.resize(line.length);
  std::iota(order.begin(), order.end(), 0);
  const auto larger = [&](int32_t a, int32_t b) {
    const float va = line.values[a];
    const float vb = line.values[b];
    if (std::isnan(va) != std::isnan(vb)) return std::isnan(vb);
    if (va > vb || vb > va) return va > vb;
    return a < b;
  };
  std::partial_sort(order.begin(), order.begin() + most, order.end(), larger);
  sums.assign(1, 0.0F);
  for (int64_t k = 0; k < most; ++k) sums.push_back(sums.back() + line.values[order[k]]);
  for (size_t i = 0; i < topks.size(); ++i) {
    line.averages[i] = sums[std::min(topks[i], most)] / static_cast<float>(topks[i]);
  }
  if (line.positions == nullptr) return;
  std::copy_n(order.begin(), most, line.positions);
  std::fill(line.positions + most, line.positions + topks.back(), -1);
}

absl::Status TopkAvg(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<TopkAvgAttrs>();
  const Offsets offsets = ctx.input(kX).lod.back();
  const Offsets rows = ctx.input(kRow).lod.back();
  const Offsets columns = ctx.input(kColumn).lod.back();
  const float* const x = ctx.input(kX).data<float>();
  float* const out = ctx.output(kOut).mutable_data<float>();
  Tensor* const pos = ctx.optional_output(kPos);
  const auto num_topks = std::ssize(attrs.topks);
  const int64_t grain = kElementwiseGrain * SequenceCount(offsets) / (8 * offsets.back() + 1) + 1;
  ParallelFor(ctx.num_threads(), SequenceCount(offsets), grain, [&](int64_t first, int64_t last) {
    std::vector<int32_t> order;
    std::vector<float> sums;
    for (int64_t i = first; i < last; ++i) {
      const int64_t height = rows[i + 1] - rows[i];
      const int64_t width = columns[i + 1] - columns[i];
      for (int64_t line = 0; line < attrs.channels * height; ++line) {
        // Matrices lie one after the other in X, the lines of a row side by side in Out.
        const int64_t to = (rows[i] + line % height) * attrs.channels + line / height;
        PoolLine(attrs.topks,
                 {x + offsets[i] + line * width, width, out + to * num_topks,
                  pos == nullptr ? nullptr : pos->mutable_data<int32_t>() + to * attrs.largest()},
                 order, sums);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_topk_avg_pooling",
    .inputs = {{"X"}, {"ROW", kAnyDType | kNoNeedBuffer}, {"COLUMN", kAnyDType | kNoNeedBuffer}},
    .outputs = {{"Out"}, {"pos", kOptional}},
    .parse = ParseAttrs<TopkAvgAttrs, ReadTopkAvgAttrs>,
    .infer_dtype = InferDTypes,
    .infer = InferTopkAvg,
    .kernels = {{DType::kFloat32, TopkAvg}},
});

}  // namespace
}  // namespace interp
