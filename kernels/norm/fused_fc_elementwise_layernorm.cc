// fused_fc_elementwise_layernorm: layer_norm(activation(X W + Bias0) + Y) with Scale and Bias1, as
// Paddle's inference passes fuse it. X is a matrix whose rows are its first `x_num_col_dims`
// dimensions, Mean and Variance have an element for each row that is normalised.
#include <cmath>
#include <string>

#include "core/op_def.h"
#include "kernels/norm/layer_norm_row.h"
#include "kernels/product/product.h"
#include "kernels/product/row_ops.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kW = 1;
constexpr int kY = 2;
constexpr int kBias0 = 3;
constexpr int kScale = 4;
constexpr int kBias1 = 5;
constexpr int kOut = 0;
constexpr int kMean = 1;
constexpr int kVariance = 2;

struct Attrs {
  int x_rows = 1;
  int begin = 1;
  float epsilon = 1e-5F;
  bool relu = false;
};

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs;
  attrs.x_rows = reader.Int("x_num_col_dims", 1);
  attrs.begin = reader.Int("begin_norm_axis", 1);
  attrs.epsilon = reader.Float("epsilon", 1e-5F);
  const std::string activation = reader.String("activation_type", "");
  attrs.relu = activation == "relu";
  if (!activation.empty() && !attrs.relu) {
    reader.Fail(absl::StrCat("attribute 'activation_type' is '", activation, "', expected relu"));
  }
  if (attrs.x_rows < 1) {
    reader.Fail(absl::StrCat("attribute 'x_num_col_dims' is ", attrs.x_rows));
  }
  if (attrs.begin < 1) reader.Fail(absl::StrCat("attribute 'begin_norm_axis' is ", attrs.begin));
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Shape& x = ctx.input(kX).shape;
  const Shape& w = ctx.input(kW).shape;
  const Shape& y = ctx.input(kY).shape;
  if (attrs.x_rows >= x.rank() || w.rank() != 2 || w[0] != x.numel(attrs.x_rows, x.rank())) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'W' ", ToString(w),
                           " do not fit with 'x_num_col_dims' ", attrs.x_rows);
  }
  Shape sum(x.dims().subspan(0, static_cast<size_t>(attrs.x_rows)));
  sum.push_back(w[1]);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kY, "Y", sum));
  if (attrs.begin >= y.rank()) {
    return InvalidArgument("attribute 'begin_norm_axis' is ", attrs.begin, " for input 'Y' ",
                           ToString(y));
  }
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kBias0, "Bias0", w[1]));
  const int64_t columns = y.numel(attrs.begin, y.rank());
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kScale, "Scale", columns));
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kBias1, "Bias1", columns));
  ctx.ShareShape(kY, kOut);
  ctx.SetShape(kMean, {y.numel(0, attrs.begin)});
  ctx.SetShape(kVariance, {y.numel(0, attrs.begin)});
  return absl::OkStatus();
}

absl::Status Run(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Shape& shape = ctx.input(kY).shape;
  if (shape.numel() == 0) {
    for (const int slot : {kMean, kVariance}) {
      if (Tensor* const none = ctx.optional_output(slot)) FillZero(ctx.num_threads(), *none);
    }
    return absl::OkStatus();
  }
  float* const out = ctx.output(kOut).mutable_data<float>();
  Product product =
      ProductOf(shape.numel(0, shape.rank() - 1), shape.back(), ctx.input(kW).shape[0]);
  if (attrs.relu) product.activation = {ActivationKind::kRelu};
  INTERP_RETURN_IF_ERROR(RunProduct<float>(ctx, product, ctx.input(kX).data<float>(),
                                           ctx.input(kW).data<float>(), ctx.input_is_constant(kW),
                                           InputOrNull<float>(ctx, kBias0), out));
  const float* const y = ctx.input(kY).data<float>();
  const float* const scale = InputOrNull<float>(ctx, kScale);
  const float* const bias = InputOrNull<float>(ctx, kBias1);
  float* const means = OutputOrNull<float>(ctx, kMean);
  float* const variances = OutputOrNull<float>(ctx, kVariance);
  const int64_t n = shape.numel(attrs.begin, shape.rank());
  const int64_t grain = GrainFor(4 * n);
  ParallelFor(ctx.num_threads(), shape.numel() / n, grain, [=, &attrs](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* const to = out + row * n;
      for (int64_t i = 0; i < n; ++i) to[i] += y[row * n + i];
      const float mean = RowSum(to, n) / static_cast<float>(n);
      const float variance = RowSumSquares(to, n, mean) / static_cast<float>(n);
      NormalizeRow(to, n, mean, 1 / std::sqrt(variance + attrs.epsilon), scale, bias, to);
      if (means != nullptr) means[row] = mean;
      if (variances != nullptr) variances[row] = variance;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_fc_elementwise_layernorm",
    .inputs =
        {{"X"}, {"W"}, {"Y"}, {"Bias0", kOptional}, {"Scale", kOptional}, {"Bias1", kOptional}},
    .outputs = {{"Out"}, {"Mean", kOptional}, {"Variance", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run}},
});

}  // namespace
}  // namespace interp::nn
