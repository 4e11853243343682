// conv2d, depthwise_conv2d, conv3d, fused_conv2d, fused_conv3d:
//   Output = affine(activation(affine(batch_norm(conv(Input, Filter) + Bias)) + ResidualData))
// where everything but the convolution is optional. See conv_problem.h for the slots and
// fused_activation.h for the attributes fuse_activation, fuse_alpha and fuse_beta.
#include <array>
#include <type_traits>

#include "absl/base/casts.h"
#include "kernels/conv/conv_bands.h"
#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_methods.h"
#include "kernels/conv/conv_onednn.h"
#include "kernels/conv/conv_own_weights.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/nn/forced_float32.h"
#include "kernels/nn/onednn.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/util/convert_elements.h"
#include "kernels/util/flops.h"
#include "kernels/util/flush_denormals.h"

namespace interp::nn {
namespace {

constexpr uint64_t kWinogradKey = 1;  // of its points; below the keys of ConvMethod

// What a convolution keeps between runs: of one method, by default oneDNN's.
struct PreparedConv {
  bool winograd = false;
  const ConvMethod* method = nullptr;            // null: none of our own
  std::unique_ptr<ConvInBands> bands;            // null: the image is made as a whole
  std::unique_ptr<OnednnConv> onednn;            // of the whole; null: nothing for this case
  std::shared_ptr<const PackedWeights> weights;  // constant ones, null until packed
};
struct ConvState : KernelState {
  ShapeCache<PreparedConv> prepared;
  const PreparedConv* last = nullptr;
  // Constant weights of our own methods, whatever the size of images; null until made.
  std::array<KeptWeights, kConvMethodKeys> own;  // by key
  WinogradFilter changing_points;
  std::vector<float> changing_bias;

  std::string algorithm() const override {
    if (last == nullptr) return "";
    if (last->winograd) return kWinogradName;
    if (last->method != nullptr) return std::string(last->method->name);
    if (last->bands != nullptr) return last->bands->implementation();
    return last->onednn == nullptr ? "plain loops" : last->onednn->implementation();
  }
};

// Takes a method other than oneDNN's where one pays.
void ChooseMethod(const KernelContext& ctx, const ConvProblem& problem, DType dtype,
                  PreparedConv& prepared) {
  if (ctx.algorithms() != Algorithms::kFast) return;
  const bool constant = WeightsAreConstant(ctx, ctx.attrs<ConvAttrs>());
  if (constant && dtype == DType::kFloat32) prepared.method = FindConvMethod(problem);
  // Direct sums in tiles take a fifth to nine tenths of the time of Winograd's method in float32.
  const bool in_tiles = dtype == DType::kBFloat16 && MultipliesBf16Tiles();
  prepared.winograd =
      prepared.method == nullptr && !in_tiles && WinogradPays(problem, constant, dtype);
}

// Makes bands, or the primitive for images of that dtype; for bfloat16 also one for float32, where
// oneDNN has no other: on processors without AVX-512, say.
absl::Status PrepareOnednn(const KernelContext& ctx, const ConvProblem& problem, DType dtype,
                           PreparedConv& prepared) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const ConvEpilogue epilogue = EpilogueOf(ctx, attrs);
  if (ctx.algorithms() == Algorithms::kFast && WeightsAreConstant(ctx, attrs) &&
      ConvInBands::Pays(problem, epilogue, dtype, ctx.num_threads())) {
    auto bands = ConvInBands::Make(problem, epilogue, dtype, ctx.num_threads());
    const absl::Status status = bands.status();
    if (bands.ok()) prepared.bands = *std::move(bands);
    if (!absl::IsUnimplemented(status)) return status;
  }
  absl::StatusOr<std::unique_ptr<OnednnConv>> conv = OnednnConv::Make(problem, epilogue, dtype);
  if (dtype != DType::kFloat32 && absl::IsUnimplemented(conv.status())) {
    conv = OnednnConv::Make(problem, epilogue, DType::kFloat32);
  }
  const absl::Status status = conv.status();
  if (conv.ok()) prepared.onednn = *std::move(conv);
  return absl::IsUnimplemented(status) ? absl::OkStatus() : status;
}

absl::StatusOr<PreparedConv*> Prepare(KernelContext& ctx, const ConvProblem& problem, DType dtype) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  ShapeCache<PreparedConv>& cache = ctx.state<ConvState>().prepared;
  ShapeCache<PreparedConv>::Key key = KeyOf(problem, ctx.num_threads());
  const ScalarAffine affine = PostAffine(ctx, attrs);
  key.push_back(absl::bit_cast<int32_t>(affine.scale));
  key.push_back(absl::bit_cast<int32_t>(affine.shift));
  if (PreparedConv* prepared = cache.Find(key)) return prepared;
  auto prepared = std::make_unique<PreparedConv>();
  ChooseMethod(ctx, problem, dtype, *prepared);
  if (prepared->winograd || prepared->method != nullptr) {
    return &cache.Insert(std::move(key), std::move(prepared));
  }
  INTERP_RETURN_IF_ERROR(PrepareOnednn(ctx, problem, dtype, *prepared));
  return &cache.Insert(std::move(key), std::move(prepared));
}

absl::StatusOr<std::shared_ptr<const PackedWeights>> Weights(KernelContext& ctx,
                                                             PreparedConv& prepared) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  if (!WeightsAreConstant(ctx, attrs)) {
    const Tensor& filter = ctx.input(kConvFilter);
    if (HasBias(ctx, attrs) || filter.layout != Layout::kPlain ||
        filter.dtype != prepared.onednn->dtype()) {
      INTERP_ASSIGN_OR_RETURN(auto packed, prepared.onednn->Pack(ctx, attrs));
      return prepared.onednn->Use(std::move(packed));
    }
    return prepared.onednn->Repack(ctx, filter.raw_data());
  }
  if (prepared.weights == nullptr) {
    INTERP_ASSIGN_OR_RETURN(prepared.weights, prepared.onednn->SharedWeights(ctx, attrs));
  }
  return prepared.weights;
}

absl::Status RunOnednn(KernelContext& ctx, PreparedConv& prepared, const void* in, void* out) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const PackedWeights> weights,
                          Weights(ctx, prepared));
  return prepared.onednn->Run(ctx, weights, in, out);
}

// Transforms a filter.
auto PointsWriter(const ConvProblem& problem, int num_threads) {
  return [&problem, num_threads](const ScaledFilter& filter, float* points) {
    TransformFilter(problem, ForwardFilter(problem, filter), num_threads, points);
  };
}

// Of weights that may change: made anew in memory of the state.
absl::StatusOr<OwnWeights> ChangingPoints(KernelContext& ctx, const ConvProblem& problem) {
  auto& state = ctx.state<ConvState>();
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    const int64_t size = WinogradFilterSize(problem);
    AlignedArray<float>& points = state.changing_points.points;
    if (points.size() != size) points = AlignedArray<float>(size);
    return absl::OkStatus();
  }));
  float* const points = state.changing_points.points.data();
  INTERP_ASSIGN_OR_RETURN(
      state.changing_bias,
      WriteFilter(ctx, ctx.attrs<ConvAttrs>(), PointsWriter(problem, ctx.num_threads()), points));
  return OwnWeights{points, state.changing_bias.empty() ? nullptr : state.changing_bias.data()};
}

absl::StatusOr<OwnWeights> PointsOfWeights(KernelContext& ctx, const ConvProblem& problem) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  if (!WeightsAreConstant(ctx, attrs)) return ChangingPoints(ctx, problem);
  return ConstantWeights(ctx, attrs, problem, kWinogradKey, WinogradFilterSize(problem),
                         PointsWriter(problem, ctx.num_threads()),
                         ctx.state<ConvState>().own[kWinogradKey]);
}

template <typename T>
absl::Status RunByWinograd(KernelContext& ctx, const ConvProblem& problem, const T* in, T* out) {
  INTERP_ASSIGN_OR_RETURN(const OwnWeights weights, PointsOfWeights(ctx, problem));
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(WinogradWorkBytes(problem, ctx.num_threads())));
  RunWinograd(problem, EpilogueOf(ctx, ctx.attrs<ConvAttrs>()), weights.filter, weights.bias, in,
              out, ctx.num_threads(), work.data<float>());
  return absl::OkStatus();
}

KeptWeights& KeptFor(KernelContext& ctx, const ConvMethod& method) {
  return ctx.state<ConvState>().own[method.key];
}

// The plain loops for float32, when oneDNN cannot help. `in` and `out` as in RunChannelsLast.
absl::Status RunDirect(KernelContext& ctx, const ConvProblem& problem, const float* in,
                       float* out) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const bool last = attrs.channels_last_dims;
  const ImageView in_view = DenseChannelsLast(ViewImage(ctx.input(kConvInput), last));
  const ImageView out_view = DenseChannelsLast(ViewImage(ctx.output(kConvOutput), last));
  const ImageView filter = ViewImage(ctx.input(kConvFilter).shape, Layout::kPlain, false);
  INTERP_ASSIGN_OR_RETURN(const FoldedWeights weights, FoldWeights(ctx, attrs));
  if (!attrs.fuse_residual) std::fill_n(out, out_view.numel(), 0.0F);
  ConvDirect(problem, in_view, in, filter, weights.filter.data(), out_view, out, ctx.num_threads());
  if (!weights.bias.empty()) AddPerChannel(out_view, weights.bias.data(), out);
  ApplyActivation(attrs.activation, out, out_view.numel());
  ApplyAffine(PostAffine(ctx, attrs), out, out_view.numel());
  return absl::OkStatus();
}

absl::Status RunFloat(KernelContext& ctx, const ConvProblem& problem, PreparedConv& prepared,
                      const float* in, float* out) {
  if (prepared.method != nullptr) {
    return RunConvMethod(ctx, ctx.attrs<ConvAttrs>(), problem, *prepared.method,
                         KeptFor(ctx, *prepared.method), in, out);
  }
  if (prepared.onednn == nullptr) return RunDirect(ctx, problem, in, out);
  return RunOnednn(ctx, prepared, in, out);
}

// `in` and `out` are dense channels-last images; `out` holds the residual when there is one.
template <typename T>
absl::Status RunChannelsLast(KernelContext& ctx, const ConvProblem& problem, const T* in, T* out) {
  const FlushDenormals flush;
  UseThreads(ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(PreparedConv * prepared, Prepare(ctx, problem, DTypeOf<T>));
  ctx.state<ConvState>().last = prepared;
  if (prepared->winograd) return RunByWinograd(ctx, problem, in, out);
  if (prepared->bands != nullptr) {
    return prepared->bands->Run(ctx, ctx.attrs<ConvAttrs>(), in, out);
  }
  if constexpr (std::is_same_v<T, float>) {
    return RunFloat(ctx, problem, *prepared, in, out);
  } else {
    if (prepared->onednn != nullptr && prepared->onednn->dtype() == DTypeOf<T>) {
      return RunOnednn(ctx, *prepared, in, out);
    }
    const int64_t in_size = ctx.input(kConvInput).numel();
    const int64_t out_size = ctx.output(kConvOutput).numel();
    INTERP_ASSIGN_OR_RETURN(const Workspace work,
                            ctx.workspace(static_cast<size_t>(in_size + out_size) * sizeof(float)));
    float* const wide_out = work.data<float>();
    float* const wide_in = wide_out + out_size;
    ConvertElements(ctx.num_threads(), in, in_size, wide_in);
    ConvertElements(ctx.num_threads(), out, out_size, wide_out);
    INTERP_RETURN_IF_ERROR(RunFloat(ctx, problem, *prepared, wide_in, wide_out));
    ConvertElements(ctx.num_threads(), wide_out, out_size, out);
    return absl::OkStatus();
  }
}

// What Conv keeps, for float and bfloat16.
template <typename T>
absl::Status PrepareConv(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  if (ctx.output(kConvOutput).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, ResolveConv(attrs, ctx.input(kConvInput).shape,
                                                                 ctx.input(kConvFilter).shape));
  const FlushDenormals flush;
  UseThreads(ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(PreparedConv * prepared, Prepare(ctx, problem, DTypeOf<T>));
  if (!WeightsAreConstant(ctx, attrs)) return absl::OkStatus();
  if (prepared->winograd) return PointsOfWeights(ctx, problem).status();
  if (prepared->bands != nullptr) return prepared->bands->TakeWeights(ctx, attrs);
  if (prepared->method != nullptr) {
    const ConvMethod& method = *prepared->method;
    return MethodWeights(ctx, attrs, problem, method, KeptFor(ctx, method)).status();
  }
  return prepared->onednn == nullptr ? absl::OkStatus() : Weights(ctx, *prepared).status();
}

// For float and bfloat16.
template <typename T>
absl::Status Conv(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const Tensor& input = ctx.input(kConvInput);
  Tensor& output = ctx.output(kConvOutput);
  if (output.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem,
                          ResolveConv(attrs, input.shape, ctx.input(kConvFilter).shape));
  return WithChannelsLast<T>(
      ctx, input, output, attrs.channels_last_dims,
      [&](const T* in, T* out) { return RunChannelsLast(ctx, problem, in, out); },
      attrs.fuse_residual ? &ctx.input(kConvResidual) : nullptr);
}

absl::Status ConvDouble(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const Tensor& input = ctx.input(kConvInput);
  const Tensor& filter = ctx.input(kConvFilter);
  Tensor& output = ctx.output(kConvOutput);
  if (output.numel() == 0) return absl::OkStatus();
  if (attrs.fuse_residual || attrs.activation.kind != ActivationKind::kNone) {
    return Unimplemented("a float64 convolution with a fused residual or activation");
  }
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem, ResolveConv(attrs, input.shape, filter.shape));
  const ImageView out_view = ViewImage(output, attrs.channels_last_dims);
  double* out = output.mutable_data<double>();
  std::fill_n(out, output.numel(), 0.0);
  ConvDirect(problem, ViewImage(input, attrs.channels_last_dims), input.data<double>(),
             ViewImage(filter, false), filter.data<double>(), out_view, out, ctx.num_threads());
  if (const Tensor* bias = ctx.optional_input(kConvBias)) {
    AddPerChannel(out_view, bias->data<double>(), out);
  }
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  const absl::StatusOr<ConvProblem> problem = ResolveConv(
      ctx.attrs<ConvAttrs>(), ctx.input(kConvInput).shape, ctx.input(kConvFilter).shape);
  return problem.ok() ? ToFlops(problem->flops()) : 0;
}

const std::vector<SlotDef> kInputs = {{"Input"},
                                      {"Filter", kAnyLayout | kMayBeUnaligned},
                                      {"Bias", kOptional},
                                      {"ResidualData", kOptional}};

std::vector<SlotDef> FusedInputs() {
  std::vector<SlotDef> inputs = kInputs;
  for (const absl::string_view name : {"BnScale", "BnBias", "BnMean", "BnVariance", "PreScale",
                                       "PreShift", "PostScale", "PostShift"}) {
    inputs.push_back({name, kOptional | kAnyDType});
  }
  return inputs;
}

OpDef ConvDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = kInputs,
      .outputs = {{"Output"}},
      .parse = parse,
      .kernel_dtype = ForcedDType<ConvAttrs>,
      .infer = InferConv,
      .kernels = {{.dtype = DType::kFloat32, .run = Conv<float>, .prepare = PrepareConv<float>},
                  {DType::kFloat64, ConvDouble},
                  {.dtype = DType::kBFloat16,
                   .run = Conv<bfloat16>,
                   .prepare = PrepareConv<bfloat16>}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .precision = PrecisionRule::kReduced,
      .gradient = {.inputs = {"Input", "Filter", "Bias", "Output@GRAD"},
                   .outputs = {"Input@GRAD", "Filter@GRAD", "Bias@GRAD"}},
      .flops = Flops,
  };
}

OpDef FusedConvDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  OpDef def = ConvDef(type, parse);
  def.inputs = FusedInputs();
  def.kernels = {
      {.dtype = DType::kFloat32, .run = Conv<float>, .prepare = PrepareConv<float>},
      {.dtype = DType::kBFloat16, .run = Conv<bfloat16>, .prepare = PrepareConv<bfloat16>}};
  def.inplace = {{kConvResidual, kConvOutput}};
  def.gradient = {};  // made by passes, which see no gradients
  return def;
}

INTERP_REGISTER_OP(ConvDef("conv2d", ParseAttrs<ConvAttrs, ReadConv2dAttrs>));
INTERP_REGISTER_OP(ConvDef("depthwise_conv2d", ParseAttrs<ConvAttrs, ReadConv2dAttrs>));
INTERP_REGISTER_OP(ConvDef("conv3d", ParseAttrs<ConvAttrs, ReadConv3dAttrs>));
INTERP_REGISTER_OP(FusedConvDef("fused_conv2d", ParseAttrs<ConvAttrs, ReadConv2dAttrs>));
INTERP_REGISTER_OP(FusedConvDef("fused_conv3d", ParseAttrs<ConvAttrs, ReadConv3dAttrs>));

}  // namespace
}  // namespace interp::nn
