// deformable_conv and deformable_conv_v1: a convolution that reads its input at positions moved by
// Offset, by bilinear interpolation with zeros outside, each sample times Mask (not in v1).
//
// Channels-last: a sample is a vector of channels. For each output row the samples are gathered
// into columns, which one matrix product per group turns into the row.
#include <cmath>

#include "kernels/nn/conv_problem.h"
#include "kernels/nn/gemm.h"
#include "kernels/nn/with_channels_last.h"

namespace interp::nn {
namespace {

constexpr int kInput = 0;
constexpr int kOffset = 1;
constexpr int kFilter = 2;
constexpr int kMask = 3;
constexpr int kOutput = 0;

struct DeformableAttrs {
  ConvAttrs conv;
  int64_t deformable_groups = 1;
};

DeformableAttrs ReadDeformable(AttrReader& reader) {
  DeformableAttrs attrs = {ReadConv2dAttrs(reader), reader.Int("deformable_groups", 1)};
  if (attrs.deformable_groups < 1) {
    reader.Fail(absl::StrCat("attribute 'deformable_groups' is ", attrs.deformable_groups));
  }
  return attrs;
}

absl::StatusOr<ConvProblem> Resolve(const OpContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  if (input.rank() != 4) {
    return InvalidArgument("input 'Input' has shape ", ToString(input), ", expected 4 dims");
  }
  return ResolveConv(ctx.attrs<DeformableAttrs>().conv, input, ctx.input(kFilter).shape);
}

absl::Status CheckSamples(const Tensor& tensor, absl::string_view name, const Shape& expected) {
  if (tensor.shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(tensor), ", expected ",
                         ToString(expected));
}

absl::Status Infer(InferContext& ctx) {
  const int64_t groups = ctx.attrs<DeformableAttrs>().deformable_groups;
  INTERP_ASSIGN_OR_RETURN(const ConvProblem p, Resolve(ctx));
  if (p.in_channels % groups != 0) {
    return InvalidArgument("attribute 'deformable_groups' is ", groups, " for ", p.in_channels,
                           " channels");
  }
  const int64_t positions = p.window[0].kernel * p.window[1].kernel * groups;
  const int64_t height = p.window[0].out;
  const int64_t width = p.window[1].out;
  INTERP_RETURN_IF_ERROR(
      CheckSamples(ctx.input(kOffset), "Offset", {p.batch, 2 * positions, height, width}));
  if (ctx.has_input(kMask)) {
    INTERP_RETURN_IF_ERROR(
        CheckSamples(ctx.input(kMask), "Mask", {p.batch, positions, height, width}));
  }
  ctx.SetShape(kOutput, {p.batch, p.out_channels, height, width});
  ctx.output(kOutput).lod = ctx.input(kInput).lod;
  return absl::OkStatus();
}

// The filter as one packed matrix [kernel positions * group_in, group_out] per group.
template <typename T>
AlignedArray<T> PackFilter(const Tensor& filter, const ConvProblem& p) {
  const ImageView view = ViewImage(filter, /*channels_last_dims=*/false);
  std::vector<T> rows(static_cast<size_t>(filter.numel()));  // output channel, position, channel
  CopyImage(view, filter.data<T>(), DenseChannelsLast(view), rows.data(), /*num_threads=*/1);
  const int64_t k = filter.shape.numel(1, 4);
  const int64_t size = PackedSize<T>(k, p.group_out());
  AlignedArray<T> packed(size * p.groups);
  for (int64_t g = 0; g < p.groups; ++g) {
    PackMatrix(k, p.group_out(), rows.data() + g * p.group_out() * k, int64_t{1}, k,
               packed.data() + g * size);
  }
  return packed;
}

template <typename T>
absl::StatusOr<std::shared_ptr<const AlignedArray<T>>> Filter(const KernelContext& ctx,
                                                              const ConvProblem& p) {
  using Packed = std::shared_ptr<const AlignedArray<T>>;
  const auto pack = [&]() -> absl::StatusOr<Packed> {
    Packed packed;
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      packed = std::make_shared<AlignedArray<T>>(PackFilter<T>(ctx.input(kFilter), p));
      return absl::OkStatus();
    }));
    return packed;
  };
  if (!ctx.input_is_constant(kFilter)) return pack();
  return ctx.Shared<AlignedArray<T>>(/*key=*/0, pack);
}

// out[0, n) = factor * the image's channels at (y, x), between pixels by bilinear interpolation.
template <typename T>
void Sample(const T* image, int64_t height, int64_t width, int64_t pixel_stride, T y, T x, T factor,
            int64_t n, T* out) {
  std::fill_n(out, n, T{0});
  // Also turns NaN away.
  if (!(y > -1 && x > -1 && y < static_cast<T>(height) && x < static_cast<T>(width))) return;
  const int64_t y0 = static_cast<int64_t>(std::floor(y));
  const int64_t x0 = static_cast<int64_t>(std::floor(x));
  const T dy = y - static_cast<T>(y0);
  const T dx = x - static_cast<T>(x0);
  const T weights[2][2] = {{(1 - dy) * (1 - dx), (1 - dy) * dx}, {dy * (1 - dx), dy * dx}};
  for (int64_t i = 0; i < 2; ++i) {
    if (y0 + i < 0 || y0 + i >= height) continue;
    for (int64_t j = 0; j < 2; ++j) {
      if (x0 + j < 0 || x0 + j >= width) continue;
      const T weight = weights[i][j] * factor;
      const T* pixel = image + ((y0 + i) * width + x0 + j) * pixel_stride;
      for (int64_t c = 0; c < n; ++c) out[c] += weight * pixel[c];
    }
  }
}

template <typename T>
struct Deformable {
  const ConvProblem& p;
  int64_t deformable_groups;
  const T* in;  // dense channels-last
  ImageView offset_view;
  const T* offset;
  ImageView mask_view;
  const T* mask;  // null: all ones
  const T* filter;

  int64_t positions() const { return p.window[0].kernel * p.window[1].kernel; }
  int64_t columns_size() const { return p.window[1].out * positions() * p.in_channels; }

  // Row r counts the output rows of all images. `columns` is scratch: [group, x, position,
  // channel].
  void Row(int64_t r, T* columns, T* out) const {
    const int64_t n = r / p.window[0].out;
    const int64_t y = r % p.window[0].out;
    const int64_t width = p.window[1].out;
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t k = 0; k < positions(); ++k) {
        for (int64_t d = 0; d < deformable_groups; ++d) Gather(n, y, x, k, d, columns);
      }
    }
    const int64_t depth = positions() * p.group_in();
    const int64_t packed = PackedSize<T>(depth, p.group_out());
    for (int64_t g = 0; g < p.groups; ++g) {
      GemmPacked(width, depth, p.group_out(), columns + g * width * depth, depth,
                 filter + g * packed, out + r * width * p.out_channels + g * p.group_out(),
                 p.out_channels, /*accumulate=*/false);
    }
  }

 private:
  T At(const ImageView& view, const T* data, int64_t n, int64_t c, int64_t y, int64_t x) const {
    return data[n * view.strides[0] + c * view.strides[1] + y * view.strides[2] +
                x * view.strides[3]];
  }

  // Samples the channels of deformable group d, which may lie in several groups of the convolution.
  void Gather(int64_t n, int64_t y, int64_t x, int64_t k, int64_t d, T* columns) const {
    const WindowAxis& h = p.window[0];
    const WindowAxis& w = p.window[1];
    const int64_t at = d * positions() + k;
    const T factor = mask == nullptr ? T{1} : At(mask_view, mask, n, at, y, x);
    const T sample_y = static_cast<T>(y * h.stride - h.pad_begin + k / w.kernel * h.dilation) +
                       At(offset_view, offset, n, 2 * at, y, x);
    const T sample_x = static_cast<T>(x * w.stride - w.pad_begin + k % w.kernel * w.dilation) +
                       At(offset_view, offset, n, 2 * at + 1, y, x);
    const T* image = in + n * h.in * w.in * p.in_channels;
    const int64_t size = p.in_channels / deformable_groups;
    const int64_t end = (d + 1) * size;
    for (int64_t c = d * size; c < end;) {
      const int64_t g = c / p.group_in();
      const int64_t stop = std::min(end, (g + 1) * p.group_in());
      T* out = columns + ((g * w.out + x) * positions() + k) * p.group_in() + c - g * p.group_in();
      Sample(image + c, h.in, w.in, p.in_channels, sample_y, sample_x, factor, stop - c, out);
      c = stop;
    }
  }
};

template <typename T>
absl::Status RunRows(const KernelContext& ctx, const Deformable<T>& task, T* out) {
  const int64_t rows = task.p.batch * task.p.window[0].out;
  const int64_t chunks = std::min<int64_t>(ctx.num_threads(), rows);
  const int64_t size = task.columns_size();
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(chunks * size) * sizeof(T)));
  ParallelFor(ctx.num_threads(), chunks, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      T* columns = static_cast<T*>(scratch.data()) + chunk * size;
      const int64_t last = rows * (chunk + 1) / chunks;
      for (int64_t r = rows * chunk / chunks; r < last; ++r) task.Row(r, columns, out);
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status DeformableConv(KernelContext& ctx) {
  Tensor& output = ctx.output(kOutput);
  if (output.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, Resolve(ctx));
  INTERP_ASSIGN_OR_RETURN(const auto filter, Filter<T>(ctx, problem));
  const Tensor& offset = ctx.input(kOffset);
  const Tensor* mask = ctx.optional_input(kMask);
  Deformable<T> task = {problem,
                        ctx.attrs<DeformableAttrs>().deformable_groups,
                        nullptr,
                        ViewImage(offset, false),
                        offset.data<T>(),
                        mask == nullptr ? ImageView() : ViewImage(*mask, false),
                        mask == nullptr ? nullptr : mask->data<T>(),
                        filter->data()};
  return WithChannelsLast<T>(ctx, ctx.input(kInput), output, /*channels_last_dims=*/false,
                             [&](const T* in, T* out) {
                               task.in = in;
                               return RunRows(ctx, task, out);
                             });
}

// The sampling, which depends on the offsets, does not count.
int64_t Flops(const OpContext& ctx) { return ConvFlops(ctx.output(kOutput), ctx.input(kFilter)); }

OpDef DeformableDef(absl::string_view type, std::vector<SlotDef> inputs) {
  return OpDef{
      .type = type,
      .inputs = std::move(inputs),
      .outputs = {{"Output"}},
      .parse = ParseAttrs<DeformableAttrs, ReadDeformable>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, DeformableConv<float>},
                  {DType::kFloat64, DeformableConv<double>}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .flops = Flops,
  };
}

const SlotDef kFilterSlot = {"Filter", kAnyLayout};
INTERP_REGISTER_OP(DeformableDef("deformable_conv",
                                 {{"Input"}, {"Offset"}, kFilterSlot, {"Mask", kOptional}}));
INTERP_REGISTER_OP(DeformableDef("deformable_conv_v1",
                                 {{"Input"}, {"Offset"}, kFilterSlot, {"Mask", kOptional}}));

}  // namespace
}  // namespace interp::nn
