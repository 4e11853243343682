// batch_norm_grad_grad and instance_norm_double_grad. Of the elements that are normalised together,
// those of a channel, or of one image's, with m their number, x' = (X - mean) s, s = 1 / sqrt(
// variance + epsilon), g = DY, a = DDX and P(v) = v - mean of v - x' mean of (v x'):
//
//   DDY    = Scale s P(a) + DDScale x' + DDBias          DScale = s sum of (a P(g))
//   DX     = DDScale s P(g) - Scale s^2 (x' mean of (a P(g)) + G P(a) + A P(g))
//
// where A and G are the means of a x' and g x'. With statistics that do not depend on X, P(v) is v,
// and the bracket is zero. SavedVariance holds s. (Paddle:
// phi/kernels/cpu/batch_norm_grad_kernel.cc, instance_norm_grad_kernel.cc.)
#include <array>
#include <cmath>

#include "core/op_def.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/util/all_present.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

// Both ops have these slots, under other names.
constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kSavedMean = 2;
constexpr int kSavedVariance = 3;
constexpr int kDY = 4;
constexpr int kDDX = 5;
constexpr int kDDScale = 6;
constexpr int kDDBias = 7;
constexpr int kMean = 8;  // of batch_norm alone, as the next
constexpr int kVariance = 9;
constexpr int kDX = 0;
constexpr int kDScale = 1;
constexpr int kDDY = 2;

// Of the inputs above; instance_norm has not all.
using Names = std::array<absl::string_view, 10>;
constexpr Names kBatchNormNames = {"X",   "Scale",   "SavedMean", "SavedVariance", "DY",
                                   "DDX", "DDScale", "DDBias",    "Mean",          "Variance"};
constexpr Names kInstanceNormNames = {"x",      "fwd_scale",   "saved_mean",      "saved_variance",
                                      "grad_y", "grad_x@GRAD", "grad_scale@GRAD", "grad_bias@GRAD"};

struct NormAttrs {
  double epsilon = 1e-5;
  bool running = false;  // statistics are Mean and Variance
  bool channels_last = false;
  bool by_image = false;
};

NormAttrs ReadBatchNormSecond(AttrReader& reader) {
  const BatchNormAttrs attrs = ReadBatchNorm(reader);
  return {attrs.epsilon, attrs.running_gradient, attrs.channels_last_dims, false};
}
NormAttrs ReadInstanceNormSecond(AttrReader& reader) {
  return {reader.Float("epsilon", 1e-5F), false, false, true};
}

// How many images, channels, and elements of a channel of an image X has.
struct Extents {
  int64_t images, channels, pixels;
};
Extents ExtentsOf(const Shape& x, const NormAttrs& attrs) {
  const int64_t channels = attrs.channels_last ? x.back() : x[1];
  const int64_t rest = x.numel() / std::max<int64_t>(x[0] * channels, 1);
  return {x[0], channels, rest};
}

template <const Names& kNames>
absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckRank(ctx, kX, kNames[kX], 2, 5, "2 to 5 dims"));
  const NormAttrs& attrs = ctx.attrs<NormAttrs>();
  const Extents extents = ExtentsOf(x, attrs);
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kDY, kNames[kDY], x));
  if (ctx.has_input(kDDX)) INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kDDX, kNames[kDDX], x));
  const int mean = attrs.running ? kMean : kSavedMean;
  for (const int slot : {mean, mean + 1}) {
    INTERP_RETURN_IF_ERROR(CheckPresent(ctx, slot, kNames[slot]));
  }
  const int64_t groups = extents.channels * (attrs.by_image ? extents.images : 1);
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, mean, kNames[mean], groups));
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, mean + 1, kNames[mean + 1], groups));
  for (const int slot : {kScale, kDDScale, kDDBias}) {
    INTERP_RETURN_IF_ERROR(CheckVector(ctx, slot, kNames[slot], extents.channels));
  }
  ctx.ShareShape(kX, kDX);
  ctx.SetShape(kDScale, {extents.channels});
  ctx.ShareShape(kX, kDDY);
  return absl::OkStatus();
}

// Elements that are normalised together: `outer` runs of `inner`.
struct Group {
  int64_t start, outer, outer_stride, inner, inner_stride;

  int64_t count() const { return outer * inner; }
  template <typename Fn>
  void ForEach(const Fn& fn) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) fn(start + o * outer_stride + i * inner_stride);
    }
  }
};

Group GroupOf(const Extents& extents, const NormAttrs& attrs, int64_t image, int64_t c) {
  const int64_t size = extents.channels * extents.pixels;
  if (attrs.channels_last) return {c, 1, 0, extents.images * extents.pixels, extents.channels};
  const int64_t start = image * size + c * extents.pixels;
  return {start, attrs.by_image ? 1 : extents.images, size, extents.pixels, 1};
}

template <typename T>
struct Images {
  const T *x, *g, *a;  // a may be null: zeros
  T *dx, *ddy;         // may be null
};

// What one group is multiplied by.
struct Factors {
  double mean, inverse;  // of X
  double scale, ddscale, ddbias;
  bool running;
};

// Sets DX and DDY of the group and gives its part of DScale.
template <typename T>
double SecondGradient(const Images<T>& images, const Group& group, const Factors& by) {
  const auto normal = [&](int64_t at) { return (images.x[at] - by.mean) * by.inverse; };
  const auto incoming = [&](int64_t at) {
    return images.a == nullptr ? 0.0 : double{images.a[at]};
  };
  double a = 0, g = 0, ax = 0, gx = 0, ag = 0;
  group.ForEach([&](int64_t at) {
    a += incoming(at);
    g += images.g[at];
    ax += incoming(at) * normal(at);
    gx += images.g[at] * normal(at);
    ag += incoming(at) * images.g[at];
  });
  if (by.running) a = g = ax = gx = 0;
  const double count = static_cast<double>(std::max<int64_t>(group.count(), 1));
  const double sum = ag - (a * g + ax * gx) / count;  // of a P(g)
  const double square = by.running ? 0 : by.scale * by.inverse * by.inverse;
  group.ForEach([&](int64_t at) {
    const double x = normal(at);
    const double pa = incoming(at) - (a + x * ax) / count;
    const double pg = images.g[at] - (g + x * gx) / count;
    if (images.ddy != nullptr) {
      images.ddy[at] = static_cast<T>(by.scale * by.inverse * pa + by.ddscale * x + by.ddbias);
    }
    if (images.dx != nullptr) {
      images.dx[at] = static_cast<T>(by.ddscale * by.inverse * pg -
                                     square * (x * sum + gx * pa + ax * pg) / count);
    }
  });
  return by.inverse * sum;
}

template <typename T>
absl::Status NormSecondGrad(KernelContext& ctx) {
  const NormAttrs& attrs = ctx.attrs<NormAttrs>();
  const Extents extents = ExtentsOf(ctx.input(kX).shape, attrs);
  const Images<T> images = {ctx.input(kX).data<T>(), ctx.input(kDY).data<T>(),
                            InputOrNull<T>(ctx, kDDX), OutputOrNull<T>(ctx, kDX),
                            OutputOrNull<T>(ctx, kDDY)};
  const T* const mean = InputOrNull<T>(ctx, attrs.running ? kMean : kSavedMean);
  const T* const variance = InputOrNull<T>(ctx, attrs.running ? kVariance : kSavedVariance);
  const ChannelParameter<T> scale = {InputOrNull<T>(ctx, kScale), T{1}};
  const ChannelParameter<T> ddscale = {InputOrNull<T>(ctx, kDDScale), T{0}};
  const ChannelParameter<T> ddbias = {InputOrNull<T>(ctx, kDDBias), T{0}};
  T* const dscale = OutputOrNull<T>(ctx, kDScale);
  const int64_t parts = attrs.by_image ? extents.images : 1;
  ParallelFor(ctx.num_threads(), extents.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const size_t channel = static_cast<size_t>(c);
      double sum = 0;
      for (int64_t n = 0; n < parts; ++n) {
        const int64_t k = n * extents.channels + c;
        const double inverse =
            attrs.running ? 1 / std::sqrt(variance[k] + attrs.epsilon) : variance[k];
        sum += SecondGradient(
            images, GroupOf(extents, attrs, n, c),
            {mean[k], inverse, scale[channel], ddscale[channel], ddbias[channel], attrs.running});
      }
      if (dscale != nullptr) dscale[c] = static_cast<T>(sum);
    }
  });
  return absl::OkStatus();
}

template <const Names& kNames>
OpDef SecondGradDef(absl::string_view type, const std::array<absl::string_view, 3>& outputs) {
  OpDef def{
      .type = type,
      .inputs = {},
      .outputs = {},
      .infer = Infer<kNames>,
      .kernels = {{DType::kFloat32, NormSecondGrad<float>},
                  {DType::kFloat64, NormSecondGrad<double>}},
  };
  for (int slot = 0; slot < std::ssize(kNames) && !kNames[slot].empty(); ++slot) {
    def.inputs.push_back({kNames[slot], slot == kX || slot == kDY ? 0 : kOptional});
  }
  for (const absl::string_view slot : outputs) def.outputs.push_back({slot, kOptional});
  return def;
}

OpDef BatchNormSecondDef() {
  OpDef def = SecondGradDef<kBatchNormNames>("batch_norm_grad_grad", {"DX", "DScale", "DDY"});
  def.parse = ParseAttrs<NormAttrs, ReadBatchNormSecond>;
  return def;
}

OpDef InstanceNormSecondDef() {
  OpDef def = SecondGradDef<kInstanceNormNames>("instance_norm_double_grad",
                                                {"x@GRAD", "fwd_scale@GRAD", "grad_y@GRAD"});
  def.parse = ParseAttrs<NormAttrs, ReadInstanceNormSecond>;
  return def;
}

INTERP_REGISTER_OP(BatchNormSecondDef());
INTERP_REGISTER_OP(InstanceNormSecondDef());

}  // namespace
}  // namespace interp::nn
