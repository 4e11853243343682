// sequence_topk_avg_pooling_grad: the element of a line that is the i-th largest gets
// Out@GRAD[k] / k for each k of `topks` that is larger than i; all others get 0.
#include <algorithm>

#include "kernels/sequence/topk_avg.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::topk_avg {
namespace {

constexpr int kPos = 3;
constexpr int kOutGrad = 4;
constexpr int kXGrad = 0;

absl::Status InferTopkAvgGrad(InferContext& ctx) {
  const auto& attrs = ctx.attrs<TopkAvgAttrs>();
  INTERP_ASSIGN_OR_RETURN(const int64_t rows, CheckMatrices(ctx));
  INTERP_ASSIGN_OR_RETURN(const int64_t lines, CheckedProduct(rows, attrs.channels));
  INTERP_ASSIGN_OR_RETURN(const int64_t positions, CheckedProduct(lines, attrs.largest()));
  const Tensor& pos = ctx.input(kPos);
  if (pos.dtype != DType::kInt32 || pos.numel() != positions) {
    return InvalidArgument("input 'pos' is ", DescribeType(pos), ", expected ", positions,
                           " int32 elements");
  }
  const Shape expected = {rows, attrs.channels * std::ssize(attrs.topks)};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", expected));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status CheckPositions(const KernelContext& ctx) {
  const int64_t largest = ctx.attrs<TopkAvgAttrs>().largest();
  const Tensor& pos = ctx.input(kPos);
  const auto* const values = pos.data<int32_t>();
  const Offsets rows = ctx.input(kRow).lod.back();
  const Offsets columns = ctx.input(kColumn).lod.back();
  const int64_t per_row = largest * ctx.attrs<TopkAvgAttrs>().channels;
  for (int64_t i = 0; i < SequenceCount(rows); ++i) {
    for (int64_t k = rows[i] * per_row; k < rows[i + 1] * per_row; ++k) {
      if (values[k] >= -1 && values[k] < columns[i + 1] - columns[i]) continue;
      return InvalidArgument("input 'pos' has the value ", values[k], " at position ", k,
                             ", expected -1 to ", columns[i + 1] - columns[i] - 1);
    }
  }
  return absl::OkStatus();
}

// `positions` has topks.back() columns of the line, the largest element first; -1: none.
void UnpoolLine(const std::vector<int64_t>& topks, const float* grad, const int32_t* positions,
                float* x_grad) {
  for (int64_t i = 0; i < topks.back(); ++i) {
    if (positions[i] < 0) continue;
    float sum = 0;
    for (size_t k = 0; k < topks.size(); ++k) {
      if (topks[k] > i) sum += grad[k] / static_cast<float>(topks[k]);
    }
    x_grad[positions[i]] += sum;
  }
}

absl::Status TopkAvgGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(CheckPositions(ctx));
  const auto& attrs = ctx.attrs<TopkAvgAttrs>();
  const auto num_topks = std::ssize(attrs.topks);
  const float* const grad = ctx.input(kOutGrad).data<float>();
  const auto* const pos = ctx.input(kPos).data<int32_t>();
  float* const out = x_grad->mutable_data<float>();
  std::fill_n(out, x_grad->numel(), 0.0F);
  ForEachMatrix(ctx, [&](const Matrices& matrices) {
    matrices.ForEachLine([&](int64_t from, int64_t to) {
      UnpoolLine(attrs.topks, grad + to * num_topks, pos + to * attrs.largest(), out + from);
    });
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_topk_avg_pooling_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"ROW", kAnyDType | kNoNeedBuffer},
               {"COLUMN", kAnyDType | kNoNeedBuffer},
               {"pos", kAnyDType},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<TopkAvgAttrs, ReadTopkAvgAttrs>,
    .infer = InferTopkAvgGrad,
    .kernels = {{DType::kFloat32, TopkAvgGrad}},
});

}  // namespace
}  // namespace interp::topk_avg
