// batch_norm_grad, sync_batch_norm_grad. By channel, with x' = (X - mean) / sqrt(variance +
// epsilon):
//   Bias@GRAD = sum of Y@GRAD,   Scale@GRAD = sum of Y@GRAD x'
//   X@GRAD = Scale / sqrt(variance + epsilon) (Y@GRAD - mean of Y@GRAD - x' mean of (Y@GRAD x'))
// The means fall away where the statistics are the running ones, which do not depend on X.
// SavedVariance holds 1 / sqrt(variance + epsilon). Scale is 1 where it is absent.
#include <cmath>

#include "core/op_def.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/norm/channel_stats.h"
#include "kernels/norm/norm_grad.h"
#include "kernels/norm/statistics_dtype.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/second_gradient.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kMean = 3;
constexpr int kVariance = 4;
constexpr int kMeanOut = 5;
constexpr int kVarianceOut = 6;
constexpr int kSavedMean = 7;
constexpr int kSavedVariance = 8;
constexpr int kYGrad = 10;
constexpr int kXGrad = 0;
constexpr int kScaleGrad = 1;
constexpr int kBiasGrad = 2;

const std::vector<SlotDef> kInputs = {{"X"},
                                      {"Scale", kOptional | kAnyDType},
                                      {"Bias", kOptional | kNoNeedBuffer | kAnyDType},
                                      {"Mean", kOptional | kAnyDType},
                                      {"Variance", kOptional | kAnyDType},
                                      {"MeanOut", kOptional | kAnyDType},
                                      {"VarianceOut", kOptional | kAnyDType},
                                      {"SavedMean", kOptional | kAnyDType},
                                      {"SavedVariance", kOptional | kAnyDType},
                                      {"ReserveSpace", kOptional | kAnyDType | kNoNeedBuffer},
                                      {"Y@GRAD"}};

// The slots of the statistics that Y was normalised with.
struct StatisticsSlots {
  int mean;
  int variance;
};
StatisticsSlots FindStatistics(const OpContext& ctx) {
  if (!ctx.attrs<BatchNormAttrs>().running_gradient) return {kSavedMean, kSavedVariance};
  // Programs give the running ones under either name.
  return {ctx.has_input(kMean) ? kMean : kMeanOut,
          ctx.has_input(kVariance) ? kVariance : kVarianceOut};
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kScaleGrad, StatisticsDType(ctx.kernel()));
  ctx.Set(kBiasGrad, StatisticsDType(ctx.kernel()));
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() < 2 || x.rank() > 5) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 2 to 5 dims");
  }
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kYGrad, "Y@GRAD", x));
  const int64_t channels = ctx.attrs<BatchNormAttrs>().channels_last_dims ? x.back() : x[1];
  const StatisticsSlots statistics = FindStatistics(ctx);
  const DType dtype = StatisticsDType(ctx.input(kX).dtype);
  for (const int slot : {kScale, statistics.mean, statistics.variance}) {
    const Tensor* vector = ctx.optional_input(slot);
    if (slot == kScale && vector == nullptr) continue;
    if (vector != nullptr && vector->numel() == channels && vector->dtype == dtype) continue;
    return InvalidArgument("input '", kInputs[slot].name, "' is ",
                           vector == nullptr ? "absent" : DescribeType(*vector), ", expected ",
                           Name(dtype), "[", channels, "] for 'X' ", ToString(x));
  }
  ctx.SetShape(kXGrad, x);
  ctx.SetShape(kScaleGrad, {channels});
  ctx.SetShape(kBiasGrad, {channels});
  return absl::OkStatus();
}

// Sets the factors and the gradients of Scale and Bias.
template <typename T, typename C = ComputeType<T>>
NormGradFactors<C> FactorsOf(KernelContext& ctx, const ImageView& view, const T* x,
                             const T* y_grad) {
  const auto& attrs = ctx.attrs<BatchNormAttrs>();
  const size_t channels = static_cast<size_t>(view.channels());
  const StatisticsSlots statistics = FindStatistics(ctx);
  const C* mean = ctx.input(statistics.mean).data<C>();
  const C* variance = ctx.input(statistics.variance).data<C>();
  const ChannelParameter<C> scale = {InputOrNull<C>(ctx, kScale), C{1}};
  C* scale_grad = OutputOrNull<C>(ctx, kScaleGrad);
  C* bias_grad = OutputOrNull<C>(ctx, kBiasGrad);
  const std::vector<double> sums = SumByChannel<C, 2>(
      view,
      [=](int64_t at, int64_t c) {
        const C grad = y_grad[at];
        return std::array<C, 2>{grad, grad * (C{x[at]} - mean[c])};
      },
      ctx.num_threads());
  const double count = static_cast<double>(view.batch() * view.pixels());
  NormGradFactors<C> factors(channels, /*stride=*/0);
  for (size_t c = 0; c < channels; ++c) {
    const double inverse = attrs.running_gradient
                               ? 1 / std::sqrt(static_cast<double>(variance[c]) + attrs.epsilon)
                               : static_cast<double>(variance[c]);
    const double gradient = scale[c] * inverse;
    factors.gradient[c] = static_cast<C>(gradient);
    factors.mean[c] = mean[c];
    if (!attrs.running_gradient) {
      factors.value[c] = static_cast<C>(-gradient * inverse * inverse * sums[channels + c] / count);
      factors.shift[c] = static_cast<C>(-gradient * sums[c] / count);
    }
    if (scale_grad != nullptr) scale_grad[c] = static_cast<C>(sums[channels + c] * inverse);
    if (bias_grad != nullptr) bias_grad[c] = static_cast<C>(sums[c]);
  }
  return factors;
}

// One pixel in all has no variance: the forward op has passed X through.
template <typename T>
NormGradFactors<T> PassThrough(KernelContext& ctx, size_t channels) {
  for (const int slot : {kScaleGrad, kBiasGrad}) {
    if (Tensor* grad = ctx.optional_output(slot)) {
      std::fill_n(grad->mutable_data<T>(), channels, T{0});
    }
  }
  return NormGradFactors<T>(channels, /*stride=*/0);
}

// All images lie as `view` says, which is dense. `x_grad` may be null.
template <typename T>
void Run(KernelContext& ctx, const ImageView& view, const T* x, const T* y_grad, T* x_grad) {
  const bool one =
      !ctx.attrs<BatchNormAttrs>().running_gradient && view.batch() * view.pixels() == 1;
  using C = ComputeType<T>;
  const NormGradFactors<C> factors = one ? PassThrough<C>(ctx, static_cast<size_t>(view.channels()))
                                         : FactorsOf(ctx, view, x, y_grad);
  if (x_grad != nullptr) ApplyNormGrad(view, factors, x, y_grad, x_grad, ctx.num_threads());
}

template <typename T>
absl::Status BatchNormGrad(KernelContext& ctx) {
  return WithDenseGradImages<T>(ctx,
                                {ctx.input(kX), ctx.input(kYGrad), ctx.optional_output(kXGrad)},
                                ctx.attrs<BatchNormAttrs>().channels_last_dims,
                                [&](const ImageView& view, const T* x, const T* y_grad, T* x_grad) {
                                  Run(ctx, view, x, y_grad, x_grad);
                                  return absl::OkStatus();
                                });
}

OpDef GradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = kInputs,
      .outputs = {{"X@GRAD", kOptional}, {"Scale@GRAD", kOptional}, {"Bias@GRAD", kOptional}},
      .parse = ParseAttrs<BatchNormAttrs, ReadBatchNorm>,
      .infer_dtype = InferDTypes,
      .infer = Infer,
      .kernels = {{DType::kFloat32, BatchNormGrad<float>},
                  {DType::kFloat64, BatchNormGrad<double>},
                  {DType::kBFloat16, BatchNormGrad<bfloat16>}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kYGrad, kXGrad}},
  };
}

constexpr SecondGradient kSecond = {
    .type = "batch_norm_grad_grad",
    .values = {{{"X", "X"},
                {"Scale", "Scale"},
                {"SavedMean", "SavedMean"},
                {"SavedVariance", "SavedVariance"},
                {"DY", "Y@GRAD"},
                {"Mean", "Mean"},
                {"Mean", "MeanOut"},
                {"Variance", "Variance"},
                {"Variance", "VarianceOut"}}},
    .incoming = {{{"DDX", "X@GRAD"}, {"DDScale", "Scale@GRAD"}, {"DDBias", "Bias@GRAD"}}},
    .results = {{{"DX", "X"}, {"DScale", "Scale"}, {"DDY", "Y@GRAD"}}}};

INTERP_REGISTER_OP(WithSecond<kSecond>(GradDef("batch_norm_grad")));
INTERP_REGISTER_OP(GradDef("sync_batch_norm_grad"));

}  // namespace
}  // namespace interp::nn
