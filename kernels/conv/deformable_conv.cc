// deformable_conv and deformable_conv_v1: a convolution that reads its input at positions moved by
// Offset, by bilinear interpolation with zeros outside, each sample times Mask (not in v1).
//
// Channels-last: a sample is a vector of channels. For each output row the samples are gathered
// into columns, which one matrix product per group turns into the row.
#include "kernels/conv/deformable_conv.h"

#include "kernels/nn/with_channels_last.h"
#include "kernels/product/gemm.h"

namespace interp::nn {
namespace {

constexpr int kOutput = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ConvProblem p, CheckDeformable(ctx));
  ctx.SetShape(kOutput, {p.batch, p.out_channels, p.window[0].out, p.window[1].out});
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<std::shared_ptr<const AlignedArray<T>>> Filter(const KernelContext& ctx,
                                                              const ConvProblem& p) {
  using Packed = std::shared_ptr<const AlignedArray<T>>;
  const auto pack = [&]() -> absl::StatusOr<Packed> {
    Packed packed;
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      packed = std::make_shared<AlignedArray<T>>(
          PackDeformableFilter<T, false>(ctx.input(kDeformableFilter), p));
      return absl::OkStatus();
    }));
    return packed;
  };
  if (!ctx.input_is_constant(kDeformableFilter)) return pack();
  return ctx.Shared<AlignedArray<T>>(/*key=*/0, pack);
}

// Row r counts the output rows of all images. `columns` is scratch.
template <typename T>
void RunRow(const DeformableSamples<T>& samples, const T* filter, int64_t r, T* columns, T* out) {
  const ConvProblem& p = samples.p;
  const int64_t width = p.window[1].out;
  samples.Gather(r / p.window[0].out, r % p.window[0].out, columns);
  const int64_t depth = samples.positions() * p.group_in();
  const int64_t packed = PackedSize<T>(depth, p.group_out());
  for (int64_t g = 0; g < p.groups; ++g) {
    GemmPacked(width, depth, p.group_out(), columns + g * width * depth, depth, filter + g * packed,
               out + r * width * p.out_channels + g * p.group_out(), p.out_channels,
               /*accumulate=*/false);
  }
}

template <typename T>
absl::Status RunRows(const KernelContext& ctx, const DeformableSamples<T>& task, const T* filter,
                     T* out) {
  const int64_t rows = task.p.batch * task.p.window[0].out;
  const int64_t chunks = std::min<int64_t>(ctx.num_threads(), rows);
  const int64_t size = task.columns_size();
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(chunks * size) * sizeof(T)));
  ParallelFor(ctx.num_threads(), chunks, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      T* columns = static_cast<T*>(scratch.data()) + chunk * size;
      const int64_t last = rows * (chunk + 1) / chunks;
      for (int64_t r = rows * chunk / chunks; r < last; ++r) RunRow(task, filter, r, columns, out);
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status DeformableConv(KernelContext& ctx) {
  Tensor& output = ctx.output(kOutput);
  if (output.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, ResolveDeformable(ctx));
  INTERP_ASSIGN_OR_RETURN(const auto filter, Filter<T>(ctx, problem));
  return WithChannelsLast<T>(ctx, ctx.input(kDeformableInput), output, /*channels_last_dims=*/false,
                             [&](const T* in, T* out) {
                               return RunRows(ctx, MakeDeformableSamples(ctx, problem, in),
                                              filter->data(), out);
                             });
}

// The sampling, which depends on the offsets, does not count.
int64_t Flops(const OpContext& ctx) {
  return ConvFlops(ctx.output(kOutput), ctx.input(kDeformableFilter));
}

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
      .gradient = {.inputs = {"Input", "Offset", "Filter", "Mask", "Output@GRAD"},
                   .outputs = {"Input@GRAD", "Offset@GRAD", "Filter@GRAD", "Mask@GRAD"}},
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
