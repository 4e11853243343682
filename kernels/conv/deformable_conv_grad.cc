// deformable_conv_grad, deformable_conv_v1_grad. A row of Output@GRAD times the filter gives the
// gradients of the row's samples; each sample passes its own on to the pixels it lies between, to
// its position (Offset) and to its factor (Mask). Filter@GRAD is Output@GRAD times the samples.
//
// The images are cut into parts by their number alone; a part is one thread's and has its own sum
// for Filter@GRAD.
#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/conv/conv_problem.h"
#include "kernels/conv/deformable_conv.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/product/gemm.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/transpose_plane.h"
#include "kernels/util/without_lod.h"

namespace interp::nn {
namespace {

constexpr int kOutGrad = 4;
constexpr int kInputGrad = 0;
constexpr int kOffsetGrad = 1;
constexpr int kFilterGrad = 2;
constexpr int kMaskGrad = 3;

constexpr int64_t kMaxParts = 16;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ConvProblem p, CheckDeformable(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(
      ctx, kOutGrad, "Output@GRAD", {p.batch, p.out_channels, p.window[0].out, p.window[1].out}));
  if (ctx.has_output(kMaskGrad) && !ctx.has_input(kDeformableMask)) {
    return InvalidArgument("output 'Mask@GRAD' without an input 'Mask'");
  }
  ctx.ShareShape(kDeformableInput, kInputGrad);
  ctx.ShareShape(kDeformableOffset, kOffsetGrad);
  ctx.ShareShape(kDeformableFilter, kFilterGrad);
  INTERP_RETURN_IF_ERROR(ShareOptionalShape(ctx, kDeformableMask, "Mask", kMaskGrad));
  return absl::OkStatus();
}

// What a sample's gradient is made of, besides that of its pixels.
template <typename T>
struct SampleGrad {
  T value = 0;  // times the sample before its factor
  T y = 0;
  T x = 0;
};

template <typename T>
struct DeformableGrad {
  DeformableSamples<T> samples;
  const T* packed;    // the filter, by group: [group_out, positions * group_in]
  const T* out_grad;  // dense channels-last
  T* in_grad;         // null: not wanted, like those below
  ImageView offset_view;
  T* offset_grad;
  ImageView mask_view;
  T* mask_grad;
  bool filter_wanted;

  int64_t depth() const { return samples.positions() * samples.p.group_in(); }
  int64_t width() const { return samples.p.window[1].out; }
  // Scratch of one thread: columns, their gradients, a row of Output@GRAD transposed, columns
  // packed.
  int64_t scratch_size() const {
    return 2 * samples.columns_size() + width() * samples.p.group_out() +
           PackedSize<T>(width(), depth()) + kPanel<T>;
  }

  void Row(int64_t n, int64_t y, T* scratch, T* filter_sum) const {
    const ConvProblem& p = samples.p;
    T* columns = scratch;
    T* grads = columns + samples.columns_size();
    const T* row = out_grad + (n * p.window[0].out + y) * width() * p.out_channels;
    if (filter_wanted) {
      samples.Gather(n, y, columns);
      AddFilter(row, columns, grads + samples.columns_size(), filter_sum);
    }
    if (in_grad == nullptr && offset_grad == nullptr && mask_grad == nullptr) return;
    for (int64_t g = 0; g < p.groups; ++g) {
      GemmPacked(width(), p.group_out(), depth(), row + g * p.group_out(), p.out_channels,
                 packed + g * PackedSize<T>(p.group_out(), depth()), grads + g * width() * depth(),
                 depth(), /*accumulate=*/false);
    }
    samples.ForEachSample([&](int64_t x, int64_t k, int64_t d) { Spread(n, y, x, k, d, grads); });
  }

 private:
  void AddFilter(const T* row, const T* columns, T* scratch, T* sum) const {
    const ConvProblem& p = samples.p;
    T* transposed = scratch;
    T* panels = AlignPanels(scratch + width() * p.group_out());
    for (int64_t g = 0; g < p.groups; ++g) {
      TransposeMatrix(row + g * p.group_out(), p.out_channels, transposed, width(), width(),
                      p.group_out());
      PackMatrix(width(), depth(), columns + g * width() * depth(), depth(), int64_t{1}, panels);
      GemmPacked(p.group_out(), width(), depth(), transposed, width(), panels,
                 sum + g * p.group_out() * depth(), depth(), /*accumulate=*/true);
    }
  }

  static T* AlignPanels(T* at) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(at);
    return reinterpret_cast<T*>((address + kVectorBytes - 1) / kVectorBytes * kVectorBytes);
  }

  void Spread(int64_t n, int64_t y, int64_t x, int64_t k, int64_t d, const T* grads) const {
    const ConvProblem& p = samples.p;
    const int64_t height = p.window[0].in;
    const int64_t in_width = p.window[1].in;
    const SamplePoint<T> point = samples.Point(n, y, x, k, d);
    const SamplePixels<T> pixels(point.y, point.x, height, in_width);
    SampleGrad<T> sum;
    samples.ForChannels(x, k, d, [&](int64_t first, int64_t count, int64_t place) {
      pixels.ForEach(height, in_width, [&](int64_t pixel, int64_t i, int64_t j) {
        AddPixel(pixels, i, j, point.factor, count, grads + place,
                 (n * height * in_width + pixel) * p.in_channels + first, sum);
      });
    });
    const int64_t at = d * samples.positions() + k;
    const auto index = [&](const ImageView& view, int64_t c) {
      return DeformableSamples<T>::Index(view, n, c, y, x);
    };
    if (offset_grad != nullptr) {
      offset_grad[index(offset_view, 2 * at)] = sum.y * point.factor;
      offset_grad[index(offset_view, 2 * at + 1)] = sum.x * point.factor;
    }
    if (mask_grad != nullptr) mask_grad[index(mask_view, at)] = sum.value;
  }

  // One neighbour (i, j), whose channels start at `pixel` of the images.
  void AddPixel(const SamplePixels<T>& pixels, int64_t i, int64_t j, T factor, int64_t count,
                const T* grads, int64_t pixel, SampleGrad<T>& sum) const {
    const T* value = samples.in + pixel;
    T product = 0;
    for (int64_t c = 0; c < count; ++c) product += grads[c] * value[c];
    sum.value += pixels.Weight(i, j) * product;
    sum.y += (i == 0 ? -1 : 1) * (j == 0 ? 1 - pixels.dx : pixels.dx) * product;
    sum.x += (j == 0 ? -1 : 1) * (i == 0 ? 1 - pixels.dy : pixels.dy) * product;
    if (in_grad == nullptr) return;
    const T weight = pixels.Weight(i, j) * factor;
    for (int64_t c = 0; c < count; ++c) in_grad[pixel + c] += weight * grads[c];
  }
};

// Runs all rows. `sums` gets the parts of Filter@GRAD; the first takes their total.
template <typename T>
absl::Status RunParts(const KernelContext& ctx, const DeformableGrad<T>& task,
                      std::vector<T>& sums) {
  const ConvProblem& p = task.samples.p;
  const int64_t parts = std::clamp<int64_t>(p.batch, 1, kMaxParts);
  const int64_t filter_size = p.out_channels * task.depth();
  if (task.filter_wanted) sums.assign(static_cast<size_t>(parts * filter_size), T{0});
  const int64_t size = (task.scratch_size() + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(parts * size) * sizeof(T)));
  ParallelFor(ctx.num_threads(), parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      T* sum = task.filter_wanted ? sums.data() + part * filter_size : nullptr;
      for (int64_t n = p.batch * part / parts; n < p.batch * (part + 1) / parts; ++n) {
        for (int64_t y = 0; y < p.window[0].out; ++y) {
          task.Row(n, y, scratch.data<T>() + part * size, sum);
        }
      }
    }
  });
  for (size_t i = static_cast<size_t>(filter_size); i < sums.size(); ++i) {
    sums[i % static_cast<size_t>(filter_size)] += sums[i];
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx, const ConvProblem& p, const T* out_grad, T* in_grad) {
  std::optional<Workspace> in_copy;
  INTERP_ASSIGN_OR_RETURN(const T* const in,
                          AsChannelsLast<T>(ctx, ctx.input(kDeformableInput), false, in_copy));
  AlignedArray<T> filter;
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    filter = PackDeformableFilter<T, true>(ctx.input(kDeformableFilter), p);
    return absl::OkStatus();
  }));
  if (in_grad != nullptr) std::fill_n(in_grad, ctx.input(kDeformableInput).numel(), T{0});
  const auto view = [](const Tensor* tensor) {
    return tensor == nullptr ? ImageView() : ViewImage(*tensor, false);
  };
  Tensor* offset_grad = ctx.optional_output(kOffsetGrad);
  Tensor* mask_grad = ctx.optional_output(kMaskGrad);
  Tensor* filter_grad = ctx.optional_output(kFilterGrad);
  const DeformableGrad<T> task = {MakeDeformableSamples(ctx, p, in),
                                  filter.data(),
                                  out_grad,
                                  in_grad,
                                  view(offset_grad),
                                  DataOrNull<T>(offset_grad),
                                  view(mask_grad),
                                  DataOrNull<T>(mask_grad),
                                  filter_grad != nullptr};
  std::vector<T> sums;
  INTERP_RETURN_IF_ERROR(RunParts(ctx, task, sums));
  if (filter_grad == nullptr) return absl::OkStatus();
  const ImageView to = view(filter_grad);
  CopyImage(DenseChannelsLast(to), sums.data(), to, filter_grad->mutable_data<T>(),
            ctx.num_threads());
  return absl::OkStatus();
}

template <typename T>
absl::Status DeformableConvGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, ResolveDeformable(ctx));
  const Tensor& out_grad = ctx.input(kOutGrad);
  if (Tensor* in_grad = ctx.optional_output(kInputGrad)) {
    return WithChannelsLast<T>(ctx, out_grad, *in_grad, /*channels_last_dims=*/false,
                               [&](const T* from, T* to) { return Run(ctx, problem, from, to); });
  }
  std::optional<Workspace> copy;
  INTERP_ASSIGN_OR_RETURN(const T* const from, AsChannelsLast<T>(ctx, out_grad, false, copy));
  return Run<T>(ctx, problem, from, nullptr);
}

OpDef GradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs =
          {{"Input"}, {"Offset"}, {"Filter", kAnyLayout}, {"Mask", kOptional}, {"Output@GRAD"}},
      .outputs = {{"Input@GRAD", kOptional},
                  {"Offset@GRAD", kOptional},
                  {"Filter@GRAD", kOptional | kAnyLayout},
                  {"Mask@GRAD", kOptional}},
      .parse = ParseAttrs<DeformableAttrs, ReadDeformable>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, DeformableConvGrad<float>},
                  {DType::kFloat64, DeformableConvGrad<double>}},
      .layout = LayoutRule::kPrefersChannelsLast,
  };
}

INTERP_REGISTER_OP(GradDef("deformable_conv_grad"));

OpDef FirstGradDef() {
  OpDef def = GradDef("deformable_conv_v1_grad");
  def.infer = WithoutLod<Infer, kInputGrad, kOffsetGrad, kFilterGrad>;
  return def;
}
INTERP_REGISTER_OP(FirstGradDef());

}  // namespace
}  // namespace interp::nn
