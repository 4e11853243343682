// group_norm_grad, instance_norm_grad. With x' = (X - mean) inverse, inverse = 1 / sqrt(variance +
// epsilon) and g = Y@GRAD Scale, and means over the group of an image:
//   X@GRAD = inverse (g - mean of g - x' mean of (g x'))
//   Scale@GRAD = sum by channel of Y@GRAD x',   Bias@GRAD = sum by channel of Y@GRAD
// Paddle's group_norm_grad leaves the mean of g out where there is no Scale, and so do we: models
// were trained with it.
#include <cmath>

#include "core/op_def.h"
#include "kernels/norm/channel_stats.h"
#include "kernels/norm/group_norm.h"
#include "kernels/norm/norm_grad.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/second_gradient.h"
#include "kernels/util/without_lod.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kMean = 2;
constexpr int kVariance = 3;
constexpr int kYGrad = 4;
constexpr int kXGrad = 0;
constexpr int kScaleGrad = 1;
constexpr int kBiasGrad = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const GroupSizes sizes, ResolveGroups(ctx, kScale + 1));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kYGrad, "Y@GRAD", ctx.input(kX).shape));
  for (const int slot : {kMean, kVariance}) {
    if (ctx.input(slot).numel() == sizes.statistics.numel()) continue;
    return InvalidArgument("the input with the ", slot == kMean ? "means" : "variances", " is ",
                           DescribeType(ctx.input(slot)), ", expected ",
                           ToString(sizes.statistics));
  }
  ctx.ShareShape(kX, kXGrad);
  ctx.SetShape(kScaleGrad, {sizes.channels});
  ctx.SetShape(kBiasGrad, {sizes.channels});
  return absl::OkStatus();
}

template <typename T>
struct GroupNormGradRun {
  const GroupNormAttrs& attrs;
  const ImageView& view;
  int64_t groups;
  bool centers;    // the mean of g counts
  const T* scale;  // null: 1
  const T* mean;   // batch x groups
  const T* variance;

  int64_t channels() const { return view.channels(); }
  int64_t GroupOf(int64_t n, int64_t c) const { return n * groups + c / (channels() / groups); }
  double Inverse(int64_t group) const {
    if (attrs.instance) return variance[group];
    return 1 / std::sqrt(static_cast<double>(variance[group]) + attrs.epsilon);
  }
  double Scale(int64_t c) const { return scale == nullptr ? 1.0 : static_cast<double>(scale[c]); }

  // By image: the sums by channel of Y@GRAD, then those of Y@GRAD (X - mean).
  std::vector<double> Sums(const T* x, const T* y_grad, int threads) const {
    std::vector<T> means(static_cast<size_t>(view.batch() * channels()));
    for (size_t i = 0; i < means.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      means[i] = mean[GroupOf(at / channels(), at % channels())];
    }
    const T* by_channel = means.data();
    const int64_t stride = channels();
    return SumByImage<T, 2>(
        view,
        [=](int64_t n, int64_t at, int64_t c) {
          return std::array<T, 2>{y_grad[at], y_grad[at] * (x[at] - by_channel[n * stride + c])};
        },
        threads);
  }

  NormGradFactors<T> Factors(const std::vector<double>& sums) const {
    NormGradFactors<T> factors(static_cast<size_t>(view.batch() * channels()), channels());
    const int64_t size = channels() / groups;
    const double count = static_cast<double>(size * view.pixels());
    for (int64_t n = 0; n < view.batch(); ++n) {
      const double* gradients = sums.data() + n * 2 * channels();
      const double* products = gradients + channels();
      for (int64_t first = 0; first < channels(); first += size) {
        const int64_t group = GroupOf(n, first);
        const double inverse = Inverse(group);
        double gradient = 0;
        double product = 0;
        for (int64_t c = first; c < first + size; ++c) {
          gradient += gradients[c] * Scale(c);
          product += products[c] * Scale(c);
        }
        for (int64_t c = first; c < first + size; ++c) {
          const size_t at = static_cast<size_t>(n * channels() + c);
          // An element by itself is its mean, and Y is the bias; no rounding may show.
          if (count == 1 && centers) {
            factors.gradient[at] = 0;
            continue;
          }
          factors.gradient[at] = static_cast<T>(inverse * Scale(c));
          factors.value[at] = static_cast<T>(-inverse * inverse * inverse * product / count);
          factors.mean[at] = mean[group];
          factors.shift[at] = centers ? static_cast<T>(-inverse * gradient / count) : T{0};
        }
      }
    }
    return factors;
  }

  void GiveVectors(const std::vector<double>& sums, T* scale_grad, T* bias_grad) const {
    for (int64_t c = 0; c < channels(); ++c) {
      double gradient = 0;
      double product = 0;
      for (int64_t n = 0; n < view.batch(); ++n) {
        const double* image = sums.data() + n * 2 * channels();
        gradient += image[c];
        product += image[channels() + c] * Inverse(GroupOf(n, c));
      }
      if (scale_grad != nullptr) scale_grad[c] = static_cast<T>(product);
      if (bias_grad != nullptr) bias_grad[c] = static_cast<T>(gradient);
    }
  }
};

template <typename T>
absl::Status GroupNormGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GroupNormAttrs>();
  INTERP_ASSIGN_OR_RETURN(const GroupSizes sizes, ResolveGroups(ctx, kScale + 1));
  const auto run = [&](const ImageView& view, const T* x, const T* y_grad, T* x_grad) {
    const GroupNormGradRun<T> task = {attrs,
                                      view,
                                      std::max<int64_t>(sizes.groups, 1),
                                      attrs.instance || ctx.has_input(kScale),
                                      InputOrNull<T>(ctx, kScale),
                                      ctx.input(kMean).data<T>(),
                                      ctx.input(kVariance).data<T>()};
    const std::vector<double> sums = task.Sums(x, y_grad, ctx.num_threads());
    task.GiveVectors(sums, OutputOrNull<T>(ctx, kScaleGrad), OutputOrNull<T>(ctx, kBiasGrad));
    if (x_grad != nullptr) {
      ApplyNormGrad(view, task.Factors(sums), x, y_grad, x_grad, ctx.num_threads());
    }
    return absl::OkStatus();
  };
  return WithDenseGradImages<T>(ctx,
                                {ctx.input(kX), ctx.input(kYGrad), ctx.optional_output(kXGrad)},
                                attrs.channels_last_dims, run);
}

OpDef GradDef(absl::string_view type, std::vector<SlotDef> inputs,
              absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = std::move(inputs),
      .outputs = {{"X@GRAD", kOptional}, {"Scale@GRAD", kOptional}, {"Bias@GRAD", kOptional}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, GroupNormGrad<float>},
                  {DType::kFloat64, GroupNormGrad<double>}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kYGrad, kXGrad}},
  };
}

INTERP_REGISTER_OP(GradDef("group_norm_grad",
                           {{"X"},
                            {"Scale", kOptional},
                            {"Mean"},
                            {"Variance"},
                            {"Y@GRAD"},
                            {"Y", kOptional | kNoNeedBuffer},
                            {"Bias", kOptional | kNoNeedBuffer}},
                           ParseAttrs<GroupNormAttrs, ReadGroupNorm>));

OpDef InstanceNormGradDef() {
  OpDef def = GradDef("instance_norm_grad",
                      {{"X"}, {"Scale", kOptional}, {"SavedMean"}, {"SavedVariance"}, {"Y@GRAD"}},
                      ParseAttrs<GroupNormAttrs, ReadInstanceNorm>);
  def.infer = WithoutLod<Infer, kXGrad>;
  return def;
}
constexpr SecondGradient kInstanceSecond = {
    .type = "instance_norm_double_grad",
    .values = {{{"x", "X"},
                {"fwd_scale", "Scale"},
                {"saved_mean", "SavedMean"},
                {"saved_variance", "SavedVariance"},
                {"grad_y", "Y@GRAD"}}},
    .incoming = {{{"grad_x@GRAD", "X@GRAD"},
                  {"grad_scale@GRAD", "Scale@GRAD"},
                  {"grad_bias@GRAD", "Bias@GRAD"}}},
    .results = {{{"x@GRAD", "X"}, {"fwd_scale@GRAD", "Scale"}, {"grad_y@GRAD", "Y@GRAD"}}}};

INTERP_REGISTER_OP(WithSecond<kInstanceSecond>(InstanceNormGradDef()));

}  // namespace
}  // namespace interp::nn
