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
#include "kernels/sequence/topk_avg.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp::topk_avg {
namespace {

constexpr int kOut = 0;
constexpr int kPos = 1;

void InferDTypes(DTypeContext& ctx) { ctx.Set(kPos, DType::kInt32); }

absl::Status InferTopkAvg(InferContext& ctx) {
  const auto& attrs = ctx.attrs<TopkAvgAttrs>();
  INTERP_ASSIGN_OR_RETURN(const int64_t rows, CheckMatrices(ctx));
  INTERP_ASSIGN_OR_RETURN(const int64_t lines, CheckedProduct(rows, attrs.channels));
  INTERP_ASSIGN_OR_RETURN(const int64_t positions, CheckedProduct(lines, attrs.largest()));
  ctx.SetShape(kOut, {rows, attrs.channels * std::ssize(attrs.topks)});
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
  const float* const x = ctx.input(kX).data<float>();
  float* const out = ctx.output(kOut).mutable_data<float>();
  Tensor* const pos = ctx.optional_output(kPos);
  const auto num_topks = std::ssize(attrs.topks);
  ForEachMatrix(ctx, [&](const Matrices& matrices) {
    std::vector<int32_t> order;
    std::vector<float> sums;
    matrices.ForEachLine([&](int64_t from, int64_t to) {
      PoolLine(attrs.topks,
               {x + from, matrices.width, out + to * num_topks,
                pos == nullptr ? nullptr : pos->mutable_data<int32_t>() + to * attrs.largest()},
               order, sums);
    });
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
    .gradient = {.inputs = {"X", "ROW", "COLUMN", "pos", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp::topk_avg
