// layer_norm: Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias over the dims from
// begin_norm_axis on. Mean and Variance (biased) have the dims before.
#include "kernels/norm/layer_norm.h"

#include <cmath>

#include "core/op_def.h"
#include "kernels/norm/layer_norm_row.h"
#include "kernels/product/row_ops.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kBias = 2;
constexpr int kY = 0;
constexpr int kMean = 1;
constexpr int kVariance = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckLayerNorm(ctx));
  const Shape& x = ctx.input(kX).shape;
  const int begin = ctx.attrs<LayerNormAttrs>().FirstDim(x);
  ctx.ShareShape(kX, kY);
  if (!ctx.attrs<LayerNormAttrs>().keeps_lod) ctx.output(kY).lod = {};
  const Shape rows(x.dims().subspan(0, static_cast<size_t>(begin)));
  ctx.SetShape(kMean, rows);
  ctx.SetShape(kVariance, rows);
  return absl::OkStatus();
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kMean, StatisticsDType(ctx.kernel()));
  ctx.Set(kVariance, StatisticsDType(ctx.kernel()));
}

template <typename T>
absl::Status LayerNorm(KernelContext& ctx) {
  using C = ComputeType<T>;
  const auto& attrs = ctx.attrs<LayerNormAttrs>();
  const Tensor& x_tensor = ctx.input(kX);
  const int first = attrs.FirstDim(x_tensor.shape);
  const int64_t rows = x_tensor.shape.numel(0, first);
  const int64_t n = x_tensor.shape.numel(first, x_tensor.shape.rank());
  const T* x = x_tensor.data<T>();
  const C* scale = InputOrNull<C>(ctx, kScale);
  const C* bias = InputOrNull<C>(ctx, kBias);
  T* y = ctx.output(kY).mutable_data<T>();
  C* means = OutputOrNull<C>(ctx, kMean);
  C* variances = OutputOrNull<C>(ctx, kVariance);
  const C epsilon = static_cast<C>(attrs.epsilon);
  const int64_t grain = GrainFor(4 * n);
  ParallelFor(ctx.num_threads(), rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const C mean = RowSum(x + r * n, n) / static_cast<C>(n);
      const C variance = RowSumSquares(x + r * n, n, mean) / static_cast<C>(n);
      NormalizeRow(x + r * n, n, mean, C{1} / std::sqrt(variance + epsilon), scale, bias,
                   y + r * n);
      if (means != nullptr) means[r] = mean;
      if (variances != nullptr) variances[r] = variance;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "layer_norm",
    .inputs = {{"X"}, {"Scale", kOptional | kAnyDType}, {"Bias", kOptional | kAnyDType}},
    .outputs = {{"Y"}, {"Mean", kOptional}, {"Variance", kOptional}},
    .parse = ParseAttrs<LayerNormAttrs, ReadLayerNorm>,
    .infer_dtype = InferDTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, LayerNorm<float>},
                {DType::kFloat64, LayerNorm<double>},
                {DType::kBFloat16, LayerNorm<bfloat16>}},
    .inplace = {{kX, kY}},
    .gradient = {.inputs = {"X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"},
                 .outputs = {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}},
});

}  // namespace
}  // namespace interp::nn
