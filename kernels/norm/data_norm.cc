// data_norm: Y = (X - Means) Scales [scale_w + bias] by column, where Means = BatchSum / BatchSize
// and Scales = sqrt(BatchSize / BatchSquareSum) come from sums over batches before. With
// `slot_dim`, a slot of that many columns whose first element is 0 gives zeros: nothing was shown.
#include "kernels/norm/data_norm.h"

#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kBatchSize = 1;
constexpr int kBatchSum = 2;
constexpr int kBatchSquareSum = 3;
constexpr int kScaleW = 4;
constexpr int kBias = 5;
constexpr int kY = 0;
constexpr int kMeans = 1;
constexpr int kScales = 2;

absl::Status CheckColumns(const InferContext& ctx, int slot, absl::string_view name) {
  const int64_t columns = ctx.input(kX).shape[1];
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() == 1 && shape[0] == columns) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected [", columns,
                         "]");
}

absl::Status InferDataNorm(InferContext& ctx) {
  const auto& attrs = ctx.attrs<DataNormAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckDataNormRows(attrs, x));
  INTERP_RETURN_IF_ERROR(CheckColumns(ctx, kBatchSize, "BatchSize"));
  INTERP_RETURN_IF_ERROR(CheckColumns(ctx, kBatchSum, "BatchSum"));
  INTERP_RETURN_IF_ERROR(CheckColumns(ctx, kBatchSquareSum, "BatchSquareSum"));
  if (attrs.scale_and_shift) {
    if (!ctx.has_input(kScaleW) || !ctx.has_input(kBias)) {
      return InvalidArgument("'enable_scale_and_shift' needs inputs 'scale_w' and 'bias'");
    }
    INTERP_RETURN_IF_ERROR(CheckColumns(ctx, kScaleW, "scale_w"));
    INTERP_RETURN_IF_ERROR(CheckColumns(ctx, kBias, "bias"));
  }
  ctx.ShareShape(kX, kY);
  ctx.SetShape(kMeans, {x[1]});
  ctx.SetShape(kScales, {x[1]});
  return absl::OkStatus();
}

// How a row is normalised.
template <typename T>
struct Columns {
  const T* means = nullptr;
  const T* scales = nullptr;
  const T* weight = nullptr;  // null: not scaled and shifted
  const T* bias = nullptr;
};

template <typename T>
void NormalizeRange(const Columns<T>& by, const T* x, int64_t begin, int64_t end, T* y) {
  for (int64_t i = begin; i < end; ++i) {
    const T value = (x[i] - by.means[i]) * by.scales[i];
    y[i] = by.weight != nullptr ? value * by.weight[i] + by.bias[i] : value;
  }
}

template <typename T>
void NormalizeRow(const Columns<T>& by, const T* x, int64_t width, int64_t slot_dim, T* y) {
  if (slot_dim <= 0) return NormalizeRange(by, x, 0, width, y);
  for (int64_t i = 0; i < width; i += slot_dim) {
    if (ShowsNothing(x[i])) {
      std::fill_n(y + i, slot_dim, T{0});
    } else {
      NormalizeRange(by, x, i, i + slot_dim, y);
    }
  }
}

template <typename T>
absl::Status DataNorm(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<DataNormAttrs>();
  const Tensor& x_tensor = ctx.input(kX);
  const int64_t width = x_tensor.shape[1];
  const T* const size = ctx.input(kBatchSize).data<T>();
  const T* const sum = ctx.input(kBatchSum).data<T>();
  const T* const square_sum = ctx.input(kBatchSquareSum).data<T>();
  T* const means = ctx.output(kMeans).mutable_data<T>();
  T* const scales = ctx.output(kScales).mutable_data<T>();
  for (int64_t i = 0; i < width; ++i) {
    means[i] = sum[i] / size[i];
    scales[i] = std::sqrt(size[i] / square_sum[i]);
  }
  Columns<T> by = {.means = means, .scales = scales};
  if (attrs.scale_and_shift) {
    by.weight = ctx.input(kScaleW).data<T>();
    by.bias = ctx.input(kBias).data<T>();
  }
  const T* const x = x_tensor.data<T>();
  T* const y = ctx.output(kY).mutable_data<T>();
  const int64_t grain = GrainFor(width);
  ParallelFor(ctx.num_threads(), x_tensor.shape[0], grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      NormalizeRow(by, x + row * width, width, attrs.slot_dim, y + row * width);
    }
  });
  return absl::OkStatus();
}

// Paddle's op also names the sums as outputs.
absl::Status MakeGradient(GradientMaker& maker) {
  if (!maker.Wants("X") && !maker.Wants("scale_w") && !maker.Wants("bias") &&
      !maker.Wants("BatchSize") && !maker.Wants("BatchSum") && !maker.Wants("BatchSquareSum")) {
    return absl::OkStatus();
  }
  Op& op = maker.Add("data_norm_grad");
  op.attrs = maker.op().attrs;
  for (const absl::string_view slot : {"X", "scale_w", "bias", "Scales", "Means"}) {
    AddInput(op, slot, maker.Arguments(slot));
  }
  AddInput(op, "Y@GRAD", maker.OutputGradients("Y"));
  for (const absl::string_view slot : {"BatchSize", "BatchSum", "BatchSquareSum"}) {
    AddOutput(op, slot, maker.Arguments(slot));
  }
  for (const absl::string_view slot :
       {"X", "BatchSize", "BatchSum", "BatchSquareSum", "scale_w", "bias"}) {
    AddOutput(op, GradientName(slot), maker.InputGradients(slot));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "data_norm",
    .inputs = {{"X"},
               {"BatchSize"},
               {"BatchSum"},
               {"BatchSquareSum"},
               {"scale_w", kOptional},
               {"bias", kOptional}},
    .outputs = {{"Y"}, {"Means"}, {"Scales"}},
    .parse = ParseAttrs<DataNormAttrs, ReadDataNormAttrs>,
    .infer = InferDataNorm,
    .kernels = {{DType::kFloat32, DataNorm<float>}, {DType::kFloat64, DataNorm<double>}},
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
