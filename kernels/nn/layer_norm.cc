// layer_norm: Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias over the dims from
// begin_norm_axis on. Mean and Variance (biased) have the dims before.
#include <cmath>

#include "core/op_def.h"
#include "kernels/nn/row_ops.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kBias = 2;
constexpr int kY = 0;
constexpr int kMean = 1;
constexpr int kVariance = 2;

struct LayerNormAttrs {
  float epsilon = 1e-5F;
  int begin = 1;
};

LayerNormAttrs ReadLayerNorm(AttrReader& reader) {
  LayerNormAttrs attrs;
  attrs.epsilon = reader.Float("epsilon", 1e-5F);
  attrs.begin = reader.Int("begin_norm_axis", 1);
  if (attrs.begin < 1) reader.Fail(absl::StrCat("attribute 'begin_norm_axis' is ", attrs.begin));
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const int begin = ctx.attrs<LayerNormAttrs>().begin;
  if (begin >= x.rank()) {
    return InvalidArgument("attribute 'begin_norm_axis' is ", begin, " for input 'X' ",
                           ToString(x));
  }
  const int64_t columns = x.numel(begin, x.rank());
  for (const int slot : {kScale, kBias}) {
    const Tensor* vector = ctx.optional_input(slot);
    if (vector == nullptr || vector->numel() == columns) continue;
    return InvalidArgument("input '", slot == kScale ? "Scale" : "Bias", "' is ",
                           DescribeType(*vector), ", expected ", columns, " elements for 'X' ",
                           ToString(x));
  }
  ctx.ShareShape(kX, kY);
  const Shape rows(x.dims().subspan(0, static_cast<size_t>(begin)));
  ctx.SetShape(kMean, rows);
  ctx.SetShape(kVariance, rows);
  return absl::OkStatus();
}

template <typename T>
const T* OptionalData(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}
template <typename T>
T* OptionalData(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data<T>();
}

// y = (x - mean) * factor * scale + bias; null scale is 1, null bias 0.
template <typename T>
void NormalizeRow(const T* x, int64_t n, T mean, T factor, const T* scale, const T* bias, T* y) {
  if (scale != nullptr && bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * scale[i] + bias[i];
  } else if (scale != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * scale[i];
  } else if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor;
  }
}

template <typename T>
absl::Status LayerNorm(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LayerNormAttrs>();
  const Tensor& x_tensor = ctx.input(kX);
  const int64_t rows = x_tensor.shape.numel(0, attrs.begin);
  const int64_t n = x_tensor.shape.numel(attrs.begin, x_tensor.shape.rank());
  const T* x = x_tensor.data<T>();
  const T* scale = OptionalData<T>(ctx.optional_input(kScale));
  const T* bias = OptionalData<T>(ctx.optional_input(kBias));
  T* y = ctx.output(kY).mutable_data<T>();
  T* means = OptionalData<T>(ctx.optional_output(kMean));
  T* variances = OptionalData<T>(ctx.optional_output(kVariance));
  const T epsilon = static_cast<T>(attrs.epsilon);
  const int64_t grain = kElementwiseGrain / std::max<int64_t>(1, 4 * n) + 1;
  ParallelFor(ctx.num_threads(), rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T mean = RowSum(x + r * n, n) / static_cast<T>(n);
      const T variance = RowSumSquares(x + r * n, n, mean) / static_cast<T>(n);
      NormalizeRow(x + r * n, n, mean, T{1} / std::sqrt(variance + epsilon), scale, bias,
                   y + r * n);
      if (means != nullptr) means[r] = mean;
      if (variances != nullptr) variances[r] = variance;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "layer_norm",
    .inputs = {{"X"}, {"Scale", kOptional}, {"Bias", kOptional}},
    .outputs = {{"Y"}, {"Mean", kOptional}, {"Variance", kOptional}},
    .parse = ParseAttrs<LayerNormAttrs, ReadLayerNorm>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, LayerNorm<float>}, {DType::kFloat64, LayerNorm<double>}},
    .inplace = {{kX, kY}},
});

}  // namespace
}  // namespace interp::nn
