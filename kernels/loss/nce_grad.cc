// nce_grad: with o of SampleLogits and b as in nce, the slope of the cost in a sample's logit is
// b (o - 1) / (o + b) for labels and o (1 - o) / (o + b) for noise.
#include "kernels/loss/nce.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/indices.h"
#include "kernels/util/row_gradient.h"

namespace interp {
namespace {

constexpr int kSampleLogits = 8;
constexpr int kSampleLabels = 9;
constexpr int kCostGrad = 10;
constexpr int kInputGrad = 0;
constexpr int kWeightGrad = 1;
constexpr int kBiasGrad = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape samples, ResolveNce(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kSampleLogits, "SampleLogits", samples));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kSampleLabels, "SampleLabels", samples));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kCostGrad, "Cost@GRAD", {samples[0], 1}));
  if (ctx.input(kSampleLabels).dtype != DType::kInt64) {
    return InvalidArgument("input 'SampleLabels' is ", Name(ctx.input(kSampleLabels).dtype),
                           ", expected int64");
  }
  ctx.ShareShape(kNceInput, kInputGrad);
  ctx.ShareShape(kNceWeight, kWeightGrad);
  if (ctx.has_input(kNceBias)) {
    ctx.ShareShape(kNceBias, kBiasGrad);
  } else if (ctx.has_output(kBiasGrad)) {
    return InvalidArgument("there is an output 'Bias@GRAD' but no input 'Bias'");
  }
  return absl::OkStatus();
}

// The slope of the loss in the logit of sample i.
template <typename T>
T Slope(const KernelContext& ctx, int64_t i, int64_t samples_per_row) {
  const Tensor* const weight = ctx.optional_input(kNceSampleWeight);
  const int64_t row = i / samples_per_row;
  const float b = ExpectedNoise(ctx, ctx.input(kSampleLabels).data<int64_t>()[i]);
  const T o = ctx.input(kSampleLogits).data<T>()[i];
  const T slope =
      i % samples_per_row < NceTrueClasses(ctx) ? (b / (o + b)) * (o - 1) : o * (1 - o) / (o + b);
  return (weight == nullptr ? slope : slope * weight->data<T>()[row]) *
         ctx.input(kCostGrad).data<T>()[row];
}

template <typename T>
absl::Status NceGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kNceInput);
  const Tensor& w = ctx.input(kNceWeight);
  const Tensor& labels = ctx.input(kSampleLabels);
  const int64_t* const label = labels.data<int64_t>();
  const int64_t width = x.shape[1];
  const int64_t per_row = NceTrueClasses(ctx) + ctx.attrs<NceAttrs>().negatives;
  const int64_t known = std::min(ctx.attrs<NceAttrs>().classes, w.shape[0]);
  INTERP_RETURN_IF_ERROR(CheckIndices(label, labels.numel(), known, "SampleLabels"));
  RowGradient<T> w_grad;
  INTERP_RETURN_IF_ERROR(
      w_grad.Prepare(ctx, kWeightGrad, w.shape, {label, label + labels.numel()}));
  Tensor* const x_grad = ctx.optional_output(kInputGrad);
  Tensor* const bias_grad = ctx.optional_output(kBiasGrad);
  for (Tensor* const tensor : {x_grad, bias_grad}) {
    if (tensor != nullptr) std::fill_n(tensor->mutable_data<T>(), tensor->numel(), T{0});
  }
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const T slope = Slope<T>(ctx, i, per_row);
    w_grad.Add(label[i], slope, x.data<T>() + i / per_row * width);
    if (bias_grad != nullptr) bias_grad->mutable_data<T>()[label[i]] += slope;
    if (x_grad == nullptr) continue;
    T* const to = x_grad->mutable_data<T>() + i / per_row * width;
    const T* const row = w.data<T>() + label[i] * width;
    for (int64_t k = 0; k < width; ++k) to[k] += slope * row[k];
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "nce_grad",
    .inputs = {{"Input"},
               {"Label", kAnyDType},
               {"Weight"},
               {"Bias", kOptional | kNoNeedBuffer},
               {"SampleWeight", kOptional},
               {"CustomDistProbs", kOptional | kAnyDType},
               {"CustomDistAlias", kOptional | kAnyDType},
               {"CustomDistAliasProbs", kOptional | kAnyDType},
               {"SampleLogits"},
               {"SampleLabels", kAnyDType},
               {"Cost@GRAD"}},
    .outputs = {{"Input@GRAD", kOptional},
                {"Weight@GRAD", kOptional | kMayBeRows},
                {"Bias@GRAD", kOptional}},
    .parse = ParseAttrs<NceAttrs, ReadNceAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, NceGrad<float>}, {DType::kFloat64, NceGrad<double>}},
});

}  // namespace
}  // namespace interp
