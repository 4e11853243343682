// batch_norm, sync_batch_norm: Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias by channel,
// with the running statistics (is_test, use_global_stats) or those of the batch, which then also
// move the running ones. Scale is 1 and Bias 0 where they are absent. On one host the two ops are
// the same.
#include "kernels/norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/nn/with_channels_last.h"
#include "kernels/norm/channel_stats.h"
#include "kernels/norm/statistics_dtype.h"
#include "kernels/util/data_or_null.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kBias = 2;
constexpr int kMean = 3;
constexpr int kVariance = 4;
constexpr int kMomentumTensor = 5;
constexpr int kY = 0;
constexpr int kMeanOut = 1;
constexpr int kVarianceOut = 2;
constexpr int kSavedMean = 3;
constexpr int kSavedVariance = 4;
constexpr int kReserveSpace = 5;

void InferDTypes(DTypeContext& ctx) {
  for (int slot = kMeanOut; slot <= kSavedVariance; ++slot) {
    ctx.Set(slot, StatisticsDType(ctx.kernel()));
  }
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() < 2 || x.rank() > 5) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 2 to 5 dims");
  }
  const bool last = ctx.attrs<BatchNormAttrs>().channels_last_dims;
  const int64_t channels = last ? x.back() : x[1];
  constexpr absl::string_view kNames[] = {"Scale", "Bias", "Mean", "Variance"};
  const DType dtype = StatisticsDType(ctx.input(kX).dtype);
  for (int slot = kScale; slot <= kVariance; ++slot) {
    const Tensor* const vector = ctx.optional_input(slot);
    if (vector == nullptr || (vector->numel() == channels && vector->dtype == dtype)) continue;
    return InvalidArgument("input '", kNames[slot - kScale], "' is ", DescribeType(*vector),
                           ", expected ", Name(dtype), "[", channels, "] for 'X' ", ToString(x));
  }
  if (const Tensor* momentum = ctx.optional_input(kMomentumTensor);
      momentum != nullptr && (momentum->numel() != 1 ||
                              (momentum->dtype != dtype && momentum->dtype != DType::kFloat32))) {
    return InvalidArgument("input 'MomentumTensor' is ", DescribeType(*momentum),
                           ", expected one element of float32 or ", Name(dtype));
  }
  ctx.ShareShape(kX, kY);
  for (int slot = kMeanOut; slot <= kSavedVariance; ++slot) ctx.SetShape(slot, {channels});
  ctx.SetShape(kReserveSpace, {0});
  return absl::OkStatus();
}

void CopyVector(const Tensor& from, Tensor* to) {
  if (to == nullptr || to->raw_data() == from.raw_data()) return;
  std::memcpy(to->mutable_raw_data(), from.raw_data(), from.size_bytes());
}

// Per-channel factors, 2 x C.
template <typename T>
struct Affine {
  T* scale;
  T* shift;
};

template <typename T>
ChannelParameter<T> ScaleOf(const KernelContext& ctx) {
  return {InputOrNull<T>(ctx, kScale), T{1}};
}

// Its values, or those of a missing one, in an array.
template <typename T>
void FillChannels(const ChannelParameter<T>& from, int64_t channels, T* to) {
  if (from.values == nullptr) {
    std::fill_n(to, channels, from.fallback);
  } else {
    std::copy_n(from.values, channels, to);
  }
}

template <typename T>
ChannelParameter<T> BiasOf(const KernelContext& ctx) {
  return {InputOrNull<T>(ctx, kBias), T{0}};
}

// The running statistics stay as they are. Paddle leaves the saved ones undefined.
template <typename T>
void LeaveStatistics(KernelContext& ctx, int64_t channels) {
  CopyVector(ctx.input(kMean), ctx.optional_output(kMeanOut));
  CopyVector(ctx.input(kVariance), ctx.optional_output(kVarianceOut));
  for (const int slot : {kSavedMean, kSavedVariance}) {
    if (Tensor* saved = ctx.optional_output(slot))
      std::fill_n(saved->mutable_data<T>(), channels, T{0});
  }
}

template <typename T>
void FromRunning(KernelContext& ctx, int64_t channels, const Affine<T>& affine) {
  const auto& attrs = ctx.attrs<BatchNormAttrs>();
  FillChannels(ScaleOf<T>(ctx), channels, affine.scale);
  FillChannels(BiasOf<T>(ctx), channels, affine.shift);
  const T* mean = ctx.input(kMean).data<T>();
  const T* variance = ctx.input(kVariance).data<T>();
  const T epsilon = static_cast<T>(attrs.epsilon);
  for (int64_t c = 0; c < channels; ++c) {
    affine.scale[c] /= std::sqrt(variance[c] + epsilon);
    affine.shift[c] -= mean[c] * affine.scale[c];
  }
  LeaveStatistics<T>(ctx, channels);
}

double Momentum(const KernelContext& ctx) {
  const Tensor* const tensor = ctx.optional_input(kMomentumTensor);
  if (tensor == nullptr) return ctx.attrs<BatchNormAttrs>().momentum;
  const bool narrow = tensor->dtype == DType::kFloat32;
  return narrow ? tensor->data<float>()[0] : tensor->data<double>()[0];
}

// Also sets the running and the saved statistics.
template <typename T>
void FromBatch(KernelContext& ctx, const Moments& moments, const Affine<T>& affine) {
  const auto& attrs = ctx.attrs<BatchNormAttrs>();
  const double momentum = Momentum(ctx);
  const auto blend = [&](int in, int out, const std::vector<double>& batch) {
    Tensor* target = ctx.optional_output(out);
    if (target == nullptr) return;
    const T* running = ctx.input(in).data<T>();
    T* updated = target->mutable_data<T>();
    for (size_t c = 0; c < batch.size(); ++c) {
      updated[c] = static_cast<T>(running[c] * momentum + batch[c] * (1 - momentum));
    }
  };
  blend(kMean, kMeanOut, moments.mean);
  blend(kVariance, kVarianceOut, moments.variance);
  const ChannelParameter<T> scale = ScaleOf<T>(ctx);
  const ChannelParameter<T> bias = BiasOf<T>(ctx);
  Tensor* saved_mean = ctx.optional_output(kSavedMean);
  Tensor* saved_variance = ctx.optional_output(kSavedVariance);
  for (size_t c = 0; c < moments.mean.size(); ++c) {
    const double inverse = 1 / std::sqrt(moments.variance[c] + static_cast<double>(attrs.epsilon));
    affine.scale[c] = static_cast<T>(scale[c] * inverse);
    affine.shift[c] = static_cast<T>(bias[c] - moments.mean[c] * scale[c] * inverse);
    if (saved_mean != nullptr) saved_mean->mutable_data<T>()[c] = static_cast<T>(moments.mean[c]);
    if (saved_variance != nullptr) saved_variance->mutable_data<T>()[c] = static_cast<T>(inverse);
  }
}

// One pixel in all has no variance: Paddle passes X through and leaves the running statistics.
template <typename T>
void PassThrough(KernelContext& ctx, int64_t channels, const Affine<T>& affine) {
  std::fill_n(affine.scale, channels, T{1});
  std::fill_n(affine.shift, channels, T{0});
  LeaveStatistics<T>(ctx, channels);
}

// `x` and `y` lie as `view` says, which is dense.
template <typename T>
absl::Status Normalize(KernelContext& ctx, const ImageView& view, const T* x, T* y) {
  const auto& attrs = ctx.attrs<BatchNormAttrs>();
  const int64_t channels = view.channels();
  using C = ComputeType<T>;
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(2 * static_cast<size_t>(channels) * sizeof(C)));
  C* const factors = scratch.data<C>();
  const Affine<C> affine = {factors, factors + channels};
  if (attrs.running_statistics) {
    FromRunning(ctx, channels, affine);
  } else if (view.batch() * view.pixels() == 1) {
    PassThrough(ctx, channels, affine);
  } else {
    FromBatch(ctx, BatchMoments(view, x, ctx.num_threads()), affine);
  }
  ScaleChannels(view, x, affine.scale, affine.shift, attrs.relu, y, ctx.num_threads());
  return absl::OkStatus();
}

template <typename T>
absl::Status BatchNorm(KernelContext& ctx) {
  return WithImagesAlike<T>(
      ctx, ctx.input(kX), ctx.output(kY), ctx.attrs<BatchNormAttrs>().channels_last_dims,
      [&](const ImageView& view, const T* x, T* y) { return Normalize(ctx, view, x, y); });
}

// The statistics that the gradient takes in place of the batch's are listed where it takes them.
absl::Status MakeGradient(GradientMaker& maker) {
  GradientDef def{.inputs = {"X", "Scale", "Bias", "MeanOut", "VarianceOut", "SavedMean",
                             "SavedVariance", "ReserveSpace", "Y@GRAD"},
                  .outputs = {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}};
  AttrReader attrs(maker.op());
  if (attrs.Bool("use_global_stats", false)) {
    def.inputs.push_back("Mean");
    def.inputs.push_back("Variance");
  }
  maker.AddByTable(def);
  return attrs.status();
}

OpDef BatchNormDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"Scale", kOptional | kAnyDType},
                 {"Bias", kOptional | kAnyDType},
                 {"Mean", kAnyDType},
                 {"Variance", kAnyDType},
                 {"MomentumTensor", kOptional | kAnyDType}},
      .outputs = {{"Y"},
                  {"MeanOut", kOptional},
                  {"VarianceOut", kOptional},
                  {"SavedMean", kOptional},
                  {"SavedVariance", kOptional},
                  {"ReserveSpace", kOptional}},
      .parse = ParseAttrs<BatchNormAttrs, ReadBatchNorm>,
      .infer_dtype = InferDTypes,
      .infer = Infer,
      .kernels = {{DType::kFloat32, BatchNorm<float>},
                  {DType::kFloat64, BatchNorm<double>},
                  {DType::kBFloat16, BatchNorm<bfloat16>}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kY}, {kMean, kMeanOut}, {kVariance, kVarianceOut}},
      .gradient = {.make = MakeGradient},
  };
}

INTERP_REGISTER_OP(BatchNormDef("batch_norm"));
INTERP_REGISTER_OP(BatchNormDef("sync_batch_norm"));

}  // namespace
}  // namespace interp::nn
