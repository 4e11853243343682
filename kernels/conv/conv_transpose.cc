// conv2d_transpose, depthwise_conv2d_transpose, conv3d_transpose, fused_conv2d_transpose: the
// gradient of a convolution with respect to its input, plus a bias. float32 and float64.
//
// For every row of the output and every kernel row that meets it, one matrix product turns a row of
// input pixels into (kernel width x output channels) columns, which are added to the output row.
// Output rows are independent, so that threads share nothing; every input row and kernel row meet
// in exactly one output row, so that nothing is computed twice. Where windows do not overlap the
// product is of whole blocks: conv_transpose_blocks.h.
#include "core/constant_elements.h"
#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_transpose_blocks.h"
#include "kernels/conv/conv_transpose_problem.h"
#include "kernels/conv/conv_transpose_rows.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/nn/onednn.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/product/gemm.h"
#include "kernels/util/all_present.h"
#include "kernels/util/flush_denormals.h"
#include "kernels/util/transpose_plane.h"

namespace interp::nn {
namespace {

constexpr int kInput = 0;
constexpr int kFilter = 1;
constexpr int kBias = 2;
constexpr int kSizeTensor = 3;
constexpr int kSizeTensorList = 4;
constexpr int kOutput = 0;

// The wanted output size: a tensor, a list of one-element tensors or the attribute; empty: none.
absl::StatusOr<std::vector<int64_t>> OutputSize(const OpContext& ctx) {
  if (ctx.has_input(kSizeTensor)) return InferContext::Integers(ctx.input(kSizeTensor));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(kSizeTensorList), "OutputSizeTensorList"));
  std::vector<int64_t> size;
  for (const Tensor* tensor : ctx.inputs(kSizeTensorList)) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> one, InferContext::Integers(*tensor));
    if (one.size() != 1) {
      return InvalidArgument("input 'OutputSizeTensorList' holds ", DescribeType(*tensor),
                             ", expected one element");
    }
    size.push_back(one[0]);
  }
  return size.empty() ? ctx.attrs<TransposeAttrs>().output_size : size;
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<TransposeAttrs>();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, OutputSize(ctx));
  INTERP_ASSIGN_OR_RETURN(
      const ConvProblem problem,
      ResolveTranspose(attrs, ctx.input(kInput).shape, ctx.input(kFilter).shape, wanted));
  INTERP_RETURN_IF_ERROR(CheckFoldedInputs(ctx, attrs.conv, problem.out_channels));
  ctx.SetShape(kOutput, TransposeOutputShape(problem, attrs.conv.channels_last_dims));
  return absl::OkStatus();
}

template <typename T>
PackedFilter<T> PackDepthwise(const T* filter, int64_t channels, int64_t positions) {
  PackedFilter<T> packed = {AlignedArray<T>(channels * positions), channels};
  TransposeMatrix(filter, positions, packed.data.data(), channels, channels, positions);
  return packed;
}

// Multiplies each output channel of a dense I,O,kernel filter by its factor.
void ScaleOutputs(const ConvProblem& problem, absl::Span<const double> factors,
                  std::vector<float>& filter) {
  if (factors.empty()) return;
  const auto outputs = static_cast<size_t>(problem.group_out());
  const size_t kernel_size = filter.size() / static_cast<size_t>(problem.in_channels) / outputs;
  for (size_t i = 0; i < filter.size(); ++i) {
    const size_t group = i / kernel_size / outputs / static_cast<size_t>(problem.group_in());
    const size_t channel = group * outputs + i / kernel_size % outputs;
    filter[i] = static_cast<float>(filter[i] * factors[channel]);
  }
}

// A dense I,O,kernel filter and the bias, with what is folded into them.
template <typename T>
std::vector<T> FoldedFilter(const KernelContext& ctx, const ConvProblem& problem,
                            const Tensor& filter, std::vector<T>& bias) {
  const ImageView view = ViewImage(filter, /*channels_last_dims=*/false);
  std::vector<T> values(static_cast<size_t>(filter.numel()));
  CopyImage(view, filter.data<T>(), DenseChannelsFirst(view), values.data(), /*num_threads=*/1);
  if constexpr (std::is_same_v<T, float>) {
    ChannelFold fold = FoldOf(ctx, ctx.attrs<TransposeAttrs>().conv, problem.out_channels);
    ScaleOutputs(problem, fold.factors, values);
    bias = std::move(fold.bias);
  } else if (const Tensor* own = ctx.optional_input(kBias)) {
    bias.assign(own->data<T>(), own->data<T>() + own->numel());
  }
  return values;
}

template <typename T>
PackedFilter<T> PackFilter(const Tensor& filter, const ConvProblem& problem,
                           const std::vector<T>& values) {
  const int64_t kernel_size = filter.shape.numel(2, filter.shape.rank());
  if (problem.depthwise() && problem.group_out() == 1) {
    return PackDepthwise(values.data(), problem.in_channels, kernel_size);
  }
  if (WindowsAreBlocks(problem)) return {PackBlocks(problem, values)};
  const int64_t width = filter.shape.back();
  const int64_t rows = kernel_size / width;
  const int64_t k = problem.group_in();
  const int64_t n = width * problem.group_out();
  PackedFilter<T> packed;
  packed.stride = PackedSize<T>(k, n);
  packed.data = AlignedArray<T>(packed.stride * rows * problem.groups);
  std::vector<T> matrix(static_cast<size_t>(k * n));
  T* out = packed.data.data();
  for (int64_t g = 0; g < problem.groups; ++g) {
    for (int64_t row = 0; row < rows; ++row, out += packed.stride) {
      for (int64_t i = 0; i < k * n; ++i) {
        const int64_t ic = g * k + i / n;
        const int64_t kx = i % n / problem.group_out();
        const int64_t oc = i % problem.group_out();
        matrix[i] = values[(ic * problem.group_out() + oc) * kernel_size + row * width + kx];
      }
      PackMatrix(k, n, matrix.data(), n, int64_t{1}, out);
    }
  }
  return packed;
}

// Dense channels-last images in and out.
template <typename T>
absl::Status RunRows(KernelContext& ctx, const RowTask<T>& task, const T* in, T* out) {
  const Window& window = task.window;
  const int64_t height = window[1].in;
  const int64_t planes = window[0].in;
  const int64_t rows = task.problem.batch * planes * height;
  const int64_t chunks = std::min<int64_t>(ctx.num_threads(), rows);
  const int64_t columns_size = task.columns_size();
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(chunks * columns_size) * sizeof(T)));
  const T* const bias = task.filter.bias_data();
  const int64_t in_image = window[0].out * window[1].out * task.in_row();
  ParallelFor(ctx.num_threads(), chunks, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      T* const columns = scratch.data<T>() + chunk * columns_size;
      const int64_t stop = rows * (chunk + 1) / chunks;
      for (int64_t r = rows * chunk / chunks; r < stop;) {
        const int64_t plane = r / height;
        const int64_t first = r - plane * height;
        const int64_t last = std::min(height, first + stop - r);
        task.Run(in + plane / planes * in_image, plane % planes, first, last, bias,
                 out + r * task.out_row(), columns);
        r += last - first;
      }
    }
  });
  return absl::OkStatus();
}

// The same where windows do not overlap.
template <typename T>
absl::Status RunBlocks(KernelContext& ctx, const BlockRow<T>& task, const T* in, T* out) {
  const Window& window = task.window;
  const int64_t rows = task.problem.batch * window[0].out * window[1].out;
  const int64_t chunks = std::min<int64_t>(ctx.num_threads(), rows);
  const int64_t columns_size = task.columns_size();
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(chunks * columns_size) * sizeof(T)));
  const int64_t in_row = window[2].out * task.problem.in_channels;
  const int64_t out_image = window[0].in * window[1].in * window[2].in * task.problem.out_channels;
  ParallelFor(ctx.num_threads(), chunks, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      T* const columns = scratch.data<T>() + chunk * columns_size;
      for (int64_t r = rows * chunk / chunks; r < rows * (chunk + 1) / chunks; ++r) {
        const int64_t y = r % window[1].out;
        const int64_t z = r / window[1].out % window[0].out;
        T* const image = out + r / window[1].out / window[0].out * out_image;
        task.Run(in + r * in_row, z, y, image, columns);
      }
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<std::shared_ptr<const PackedFilter<T>>> Filter(KernelContext& ctx,
                                                              const ConvProblem& problem) {
  using Packed = std::shared_ptr<const PackedFilter<T>>;
  const auto pack = [&]() -> absl::StatusOr<Packed> {
    INTERP_ASSIGN_OR_RETURN(const ConstantElements filter,
                            ConstantElements::Of(ctx.input(kFilter)));
    Packed packed;
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      std::vector<T> bias;
      const std::vector<T> values = FoldedFilter<T>(ctx, problem, *filter, bias);
      auto made = std::make_shared<PackedFilter<T>>(PackFilter<T>(*filter, problem, values));
      const auto width = static_cast<size_t>(filter->shape.back());
      const size_t repeats = bias.empty() || !WindowsAreBlocks(problem) ? 1 : width;
      for (size_t i = 0; i < repeats; ++i) {
        made->bias.insert(made->bias.end(), bias.begin(), bias.end());
      }
      packed = std::move(made);
      return absl::OkStatus();
    }));
    return packed;
  };
  if (!WeightsAreConstant(ctx, ctx.attrs<TransposeAttrs>().conv)) return pack();
  return ctx.Shared<PackedFilter<T>>(WindowsAreBlocks(problem) ? 1 : 0, pack);
}

absl::StatusOr<ConvProblem> ProblemOf(const KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, OutputSize(ctx));
  return ResolveTranspose(ctx.attrs<TransposeAttrs>(), ctx.input(kInput).shape,
                          ctx.input(kFilter).shape, wanted);
}

// What ConvTranspose keeps.
template <typename T>
absl::Status PrepareTranspose(KernelContext& ctx) {
  const FlushDenormals flush;
  if (!WeightsAreConstant(ctx, ctx.attrs<TransposeAttrs>().conv)) return absl::OkStatus();
  if (ctx.output(kOutput).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, ProblemOf(ctx));
  return Filter<T>(ctx, problem).status();
}

template <typename T>
absl::Status ConvTranspose(KernelContext& ctx) {
  const FlushDenormals flush;
  const auto& attrs = ctx.attrs<TransposeAttrs>();
  const Tensor& input = ctx.input(kInput);
  Tensor& output = ctx.output(kOutput);
  if (output.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, ProblemOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const auto filter, Filter<T>(ctx, problem));
  if (WindowsAreBlocks(problem)) {
    const BlockRow<T> task = {problem, PadTo3(problem.window), filter->data.data(),
                              filter->bias_data(), attrs.conv.activation};
    return WithChannelsLast<T>(ctx, input, output, attrs.conv.channels_last_dims,
                               [&](const T* in, T* out) { return RunBlocks(ctx, task, in, out); });
  }
  const RowTask<T> task = {problem, PadTo3(problem.window), *filter, attrs.conv.activation};
  return WithChannelsLast<T>(ctx, input, output, attrs.conv.channels_last_dims,
                             [&](const T* in, T* out) { return RunRows(ctx, task, in, out); });
}

int64_t Flops(const OpContext& ctx) { return ConvFlops(ctx.input(kInput), ctx.input(kFilter)); }

OpDef TransposeDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  constexpr int kSizeFlags = kOptional | kValueInInfer | kAnyDType;
  return OpDef{
      .type = type,
      .inputs = {{"Input"},
                 {"Filter", kAnyLayout | kMayBeUnaligned},
                 {"Bias", kOptional},
                 {"OutputSizeTensor", kSizeFlags, "output_size"},
                 {"OutputSizeTensorList", kSizeFlags | kVariadic, "output_size"}},
      .outputs = {{"Output"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{.dtype = DType::kFloat32,
                   .run = ConvTranspose<float>,
                   .prepare = PrepareTranspose<float>},
                  {DType::kFloat64, ConvTranspose<double>}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .gradient = {.inputs = {"Input", "Filter", "Bias", "Output@GRAD"},
                   .outputs = {"Input@GRAD", "Filter@GRAD", "Bias@GRAD"}},
      .flops = Flops,
  };
}

// What the pass fuse_conv makes: with a batch norm in test mode between bias and activation.
OpDef FusedTransposeDef() {
  OpDef def = TransposeDef("fused_conv2d_transpose", ParseAttrs<TransposeAttrs, ReadTranspose2d>);
  for (const absl::string_view name : {"BnScale", "BnBias", "BnMean", "BnVariance"}) {
    def.inputs.push_back({name, kOptional | kAnyDType});
  }
  def.kernels = {
      {.dtype = DType::kFloat32, .run = ConvTranspose<float>, .prepare = PrepareTranspose<float>}};
  def.gradient = {};  // made by passes, which see no gradients
  return def;
}

INTERP_REGISTER_OP(FusedTransposeDef());
INTERP_REGISTER_OP(TransposeDef("conv2d_transpose", ParseAttrs<TransposeAttrs, ReadTranspose2d>));
INTERP_REGISTER_OP(TransposeDef("depthwise_conv2d_transpose",
                                ParseAttrs<TransposeAttrs, ReadTranspose2d>));
INTERP_REGISTER_OP(TransposeDef("conv3d_transpose", ParseAttrs<TransposeAttrs, ReadTranspose3d>));

}  // namespace
}  // namespace interp::nn
