// group_norm: Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias with the moments of each
// image and group of channels. instance_norm: the same with one channel per group.
#include "kernels/norm/group_norm.h"

#include <cmath>

#include "kernels/nn/with_channels_last.h"
#include "kernels/norm/channel_stats.h"
#include "kernels/util/data_or_null.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kBias = 2;
constexpr int kY = 0;
constexpr int kMean = 1;
constexpr int kVariance = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const GroupSizes sizes, ResolveGroups(ctx, kBias + 1));
  ctx.ShareShape(kX, kY);
  ctx.SetShape(kMean, sizes.statistics);
  ctx.SetShape(kVariance, sizes.statistics);
  return absl::OkStatus();
}

// The work of one run on a dense image batch.
template <typename T>
struct GroupNormRun {
  const GroupNormAttrs& attrs;
  const ImageView& view;
  int64_t groups;
  const T* scale;  // null: 1
  const T* bias;   // null: 0
  T* means;        // batch x groups, null: not wanted
  T* variances;

  // Spreads sums by channel to means by group, given for every channel.
  void ToGroups(double* sums) const {
    const int64_t size = view.channels() / groups;
    const double count = static_cast<double>(size * view.pixels());
    for (int64_t g = 0; g < groups; ++g) {
      double total = 0;
      for (int64_t i = 0; i < size; ++i) total += sums[g * size + i];
      for (int64_t i = 0; i < size; ++i) sums[g * size + i] = total / count;
    }
  }

  // Sets the factors of image n, and its means by channel; `sums` is scratch for 2 x channels.
  void Factors(const T* x, int64_t n, double* sums, T* factors, T* centres, int threads) const {
    const int64_t channels = view.channels();
    double* mean = sums;
    double* variance = sums + channels;
    std::fill_n(sums, 2 * channels, 0.0);
    ForChannelBlocks(view, threads, [&](int64_t begin, int64_t end) {
      const auto value = [](T v, int64_t) { return static_cast<double>(v); };
      AddByChannel(view, x, n, begin, end, value, mean);
    });
    ToGroups(mean);
    ForChannelBlocks(view, threads, [&](int64_t begin, int64_t end) {
      const auto square = [mean](T v, int64_t c) { return (v - mean[c]) * (v - mean[c]); };
      AddByChannel(view, x, n, begin, end, square, variance);
    });
    ToGroups(variance);
    const int64_t size = channels / groups;
    for (int64_t c = 0; c < channels; ++c) {
      const double inverse = 1 / std::sqrt(variance[c] + static_cast<double>(attrs.epsilon));
      factors[c] = static_cast<T>(scale == nullptr ? inverse : inverse * scale[c]);
      centres[c] = static_cast<T>(mean[c]);
      const int64_t at = n * groups + c / size;
      if (means != nullptr) means[at] = static_cast<T>(mean[c]);
      if (variances != nullptr) {
        variances[at] = static_cast<T>(attrs.instance ? inverse : variance[c]);
      }
    }
  }
};

template <typename T>
absl::Status Normalize(KernelContext& ctx, const ImageView& view, const T* x, T* y) {
  const auto& attrs = ctx.attrs<GroupNormAttrs>();
  const Tensor* scale = ctx.optional_input(kScale);
  const Tensor* bias = ctx.optional_input(kBias);
  const int64_t channels = view.channels();
  const GroupNormRun<T> run = {attrs,
                               view,
                               attrs.groups == 0 ? channels : attrs.groups,
                               DataOrNull<T>(scale),
                               DataOrNull<T>(bias),
                               OutputOrNull<T>(ctx, kMean),
                               OutputOrNull<T>(ctx, kVariance)};
  const size_t factors = static_cast<size_t>(view.batch() * channels);
  INTERP_ASSIGN_OR_RETURN(
      const Workspace scratch,
      ctx.workspace(2 * (factors * sizeof(T) + static_cast<size_t>(channels) * sizeof(double))));
  auto* sums = static_cast<double*>(scratch.data());
  T* scales = reinterpret_cast<T*>(sums + 2 * channels);
  T* centres = scales + factors;
  for (int64_t n = 0; n < view.batch(); ++n) {
    run.Factors(x, n, sums, scales + n * channels, centres + n * channels, ctx.num_threads());
  }
  // The mean goes first: in a small group whose elements are about equal, x * scale is large.
  const auto by = [=, bias = run.bias](int64_t c, int64_t at) {
    return [centre = centres[at], a = scales[at], b = bias == nullptr ? T{0} : bias[c]](T v) {
      return (v - centre) * a + b;
    };
  };
  MapChannels(view, x, /*stride=*/channels, by, y, ctx.num_threads());
  return absl::OkStatus();
}

template <typename T>
absl::Status GroupNorm(KernelContext& ctx) {
  if (ctx.output(kY).numel() == 0) return absl::OkStatus();
  return WithImagesAlike<T>(
      ctx, ctx.input(kX), ctx.output(kY), ctx.attrs<GroupNormAttrs>().channels_last_dims,
      [&](const ImageView& view, const T* x, T* y) { return Normalize(ctx, view, x, y); });
}

OpDef GroupNormDef(absl::string_view type, std::vector<SlotDef> outputs, GradientDef gradient,
                   absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Scale", kOptional}, {"Bias", kOptional}},
      .outputs = std::move(outputs),
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, GroupNorm<float>}, {DType::kFloat64, GroupNorm<double>}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kY}},
      .gradient = std::move(gradient),
  };
}

INTERP_REGISTER_OP(GroupNormDef("group_norm", {{"Y"}, {"Mean", kOptional}, {"Variance", kOptional}},
                                {.inputs = {"X", "Y", "Scale", "Bias", "Mean", "Variance",
                                            "Y@GRAD"},
                                 .outputs = {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}},
                                ParseAttrs<GroupNormAttrs, ReadGroupNorm>));
INTERP_REGISTER_OP(GroupNormDef("instance_norm",
                                {{"Y"}, {"SavedMean", kOptional}, {"SavedVariance", kOptional}},
                                {.inputs = {"X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD"},
                                 .outputs = {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}},
                                ParseAttrs<GroupNormAttrs, ReadInstanceNorm>));

}  // namespace
}  // namespace interp::nn
