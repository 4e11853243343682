// int8_conv2d: the convolution of an int8 image and a filter that is, or is to be, quantised:
//   Output = activation(batch_norm(sums * InputScale * FilterScale / range + Bias) + ResidualData)
// Sums of products are taken in int32. The slots up to BnVariance and the attributes of those parts
// are as for fused_conv2d (conv.cc); Int8Attrs (int8_weights.h) has the others. With OutputScale,
// Output is that result on a grid, as int8; else it is float32. Made by the pass `int8`.
#include <algorithm>
#include <cmath>

#include "kernels/nn/conv_direct.h"
#include "kernels/nn/conv_onednn.h"
#include "kernels/nn/int8_sums.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/util/convert_elements.h"

namespace interp::nn {
namespace {

constexpr int kInputScale = 8;
constexpr int kFilterScale = 9;
constexpr int kOutputScale = 10;

struct Int8ConvAttrs : ConvAttrs {  // InferConv and its like read the base
  Int8Attrs int8;
};

Int8ConvAttrs ReadInt8ConvAttrs(AttrReader& reader) {
  Int8ConvAttrs attrs;
  static_cast<ConvAttrs&>(attrs) = ReadConv2dAttrs(reader);
  attrs.int8 = ReadInt8Attrs(reader);
  return attrs;
}

// One way to compute one case: the first that is there.
struct PreparedInt8Conv {
  std::unique_ptr<OnednnInt8Conv> fused;  // with everything that follows the sums
  std::unique_ptr<OnednnInt8Conv> sums;   // the sums alone
  std::unique_ptr<OnednnConv> wide;       // the sums in float32, where whole numbers stay exact
  std::shared_ptr<const dnnl::memory> filter;
  std::shared_ptr<const PackedWeights> wide_filter;
};

struct Int8ConvState : KernelState {
  ShapeCache<PreparedInt8Conv> prepared;
  std::shared_ptr<const Int8Weights> weights;  // constant ones, null until made
  Int8Epilogue epilogue;                       // of the last run
  const PreparedInt8Conv* last = nullptr;

  std::string algorithm() const override {
    if (last == nullptr) return "";
    if (last->fused != nullptr) return last->fused->implementation();
    if (last->sums != nullptr) return last->sums->implementation();
    return last->wide != nullptr ? last->wide->implementation() : "plain loops";
  }
};

bool WeightsStay(const KernelContext& ctx) {
  return WeightsAreConstant(ctx, ctx.attrs<Int8ConvAttrs>()) &&
         (!ctx.has_input(kFilterScale) || ctx.input_is_constant(kFilterScale));
}

bool ScalesStay(const KernelContext& ctx) {
  return ctx.input_is_constant(kInputScale) &&
         (!ctx.has_input(kOutputScale) || ctx.input_is_constant(kOutputScale));
}

// Joins a batch norm and the bias to factors and bias. A channel whose factor is 0 has weights of 0
// and factor 1 instead: its bias stays exact whatever it is divided by.
void FoldChannels(const KernelContext& ctx, Int8Weights& weights) {
  const auto& attrs = ctx.attrs<Int8ConvAttrs>();
  const size_t channels = weights.factors.size();
  const size_t per_channel = weights.values.size() / channels;
  weights.bias.assign(channels, 0);
  if (const Tensor* bias = ctx.optional_input(kConvBias)) weights.bias = ChannelValues(*bias);
  if (attrs.batch_norm) {
    const std::vector<float> scale = ChannelValues(ctx.input(kConvBnScale));
    const std::vector<float> shift = ChannelValues(ctx.input(kConvBnBias));
    const std::vector<float> mean = ChannelValues(ctx.input(kConvBnMean));
    const std::vector<float> variance = ChannelValues(ctx.input(kConvBnVariance));
    for (size_t c = 0; c < channels; ++c) {
      const double factor = scale[c] / std::sqrt(static_cast<double>(variance[c]) + attrs.epsilon);
      weights.factors[c] = static_cast<float>(weights.factors[c] * factor);
      weights.bias[c] = static_cast<float>((weights.bias[c] - mean[c]) * factor + shift[c]);
    }
  }
  for (size_t c = 0; c < channels; ++c) {
    if (weights.factors[c] != 0) continue;
    weights.factors[c] = 1;
    std::fill_n(weights.values.begin() + static_cast<int64_t>(c * per_channel), per_channel,
                int8_t{0});
  }
}

absl::StatusOr<std::shared_ptr<const Int8Weights>> MakeWeights(const KernelContext& ctx) {
  const Tensor& filter = ctx.input(kConvFilter);
  const ChannelView view = {.channels = filter.shape[0],
                            .inner = filter.shape.numel(1, filter.shape.rank())};
  INTERP_ASSIGN_OR_RETURN(Int8Weights weights,
                          QuantizeWeights(ctx.attrs<Int8ConvAttrs>().int8, view,
                                          DenseFilter(filter), ctx.optional_input(kFilterScale)));
  FoldChannels(ctx, weights);
  return std::make_shared<const Int8Weights>(std::move(weights));
}

absl::StatusOr<std::shared_ptr<const Int8Weights>> Weights(const KernelContext& ctx) {
  auto& state = ctx.state<Int8ConvState>();
  if (!WeightsStay(ctx)) return MakeWeights(ctx);
  if (state.weights == nullptr) {
    constexpr uint64_t kKey = 1;  // one form for all sizes of images
    const auto make = [&] { return MakeWeights(ctx); };
    INTERP_ASSIGN_OR_RETURN(state.weights, ctx.Shared<Int8Weights>(kKey, make));
  }
  return state.weights;
}

void FillEpilogue(const KernelContext& ctx, const Int8Weights& weights, Int8Epilogue& epilogue) {
  const auto& attrs = ctx.attrs<Int8ConvAttrs>();
  const float scale = *ctx.input(kInputScale).data<float>();
  epilogue.scales.resize(weights.factors.size());
  for (size_t c = 0; c < weights.factors.size(); ++c)
    epilogue.scales[c] = weights.factors[c] * scale;
  epilogue.bias = weights.bias;
  epilogue.residual = attrs.fuse_residual;
  epilogue.activation = attrs.activation;
  const Tensor* const out_scale = ctx.optional_input(kOutputScale);
  epilogue.out_scale = out_scale == nullptr ? 0 : *out_scale->data<float>();
  epilogue.out_grid = attrs.int8.out_grid;
}

// A scale of nothing makes all results the bias, which oneDNN would divide by it.
bool CanBeFused(const KernelContext& ctx, const Int8Epilogue& epilogue) {
  const auto usable = [](float scale) { return std::isnormal(scale); };
  return WeightsStay(ctx) && ScalesStay(ctx) &&
         std::all_of(epilogue.scales.begin(), epilogue.scales.end(), usable) &&
         (!ctx.has_input(kOutputScale) || (usable(epilogue.out_scale) && epilogue.out_scale > 0));
}

ShapeCache<PreparedInt8Conv>::Key CacheKey(const ConvProblem& problem, int num_threads) {
  ShapeCache<PreparedInt8Conv>::Key key = {problem.batch, num_threads};
  for (int i = 0; i < problem.window.rank; ++i) key.push_back(problem.window[i].in);
  return key;
}

// Null where oneDNN has nothing.
absl::StatusOr<std::unique_ptr<OnednnInt8Conv>> MakeConv(const ConvProblem& problem,
                                                         const Int8Epilogue& epilogue) {
  absl::StatusOr<std::unique_ptr<OnednnInt8Conv>> conv = OnednnInt8Conv::Make(problem, epilogue);
  if (absl::IsUnimplemented(conv.status())) return std::unique_ptr<OnednnInt8Conv>();
  return conv;
}

absl::StatusOr<PreparedInt8Conv*> Prepare(const KernelContext& ctx, const ConvProblem& problem,
                                          const Int8Epilogue& epilogue) {
  ShapeCache<PreparedInt8Conv>& cache = ctx.state<Int8ConvState>().prepared;
  ShapeCache<PreparedInt8Conv>::Key key = CacheKey(problem, ctx.num_threads());
  if (PreparedInt8Conv* prepared = cache.Find(key)) return prepared;
  auto prepared = std::make_unique<PreparedInt8Conv>();
  if (CanBeFused(ctx, epilogue)) {
    INTERP_ASSIGN_OR_RETURN(prepared->fused, MakeConv(problem, epilogue));
  }
  if (prepared->fused == nullptr) {
    INTERP_ASSIGN_OR_RETURN(prepared->sums, MakeConv(problem, Int8Epilogue()));
  }
  if (prepared->fused == nullptr && prepared->sums == nullptr) {
    absl::StatusOr<std::unique_ptr<OnednnConv>> wide =
        OnednnConv::Make(problem, ConvEpilogue(), DType::kFloat32);
    if (!wide.ok() && !absl::IsUnimplemented(wide.status())) return wide.status();
    if (wide.ok()) prepared->wide = *std::move(wide);
  }
  return &cache.Insert(std::move(key), std::move(prepared));
}

// The filter as `conv` wants it; of constant weights, the one in `kept`.
absl::StatusOr<std::shared_ptr<const dnnl::memory>> Packed(
    const KernelContext& ctx, const OnednnInt8Conv& conv, const Int8Weights& weights,
    std::shared_ptr<const dnnl::memory>& kept) {
  const auto pack = [&] { return conv.Pack(weights.values.data()); };
  if (!WeightsStay(ctx)) return pack();
  if (kept == nullptr) {
    INTERP_ASSIGN_OR_RETURN(kept, ctx.Shared<dnnl::memory>(conv.weights_key(), pack));
  }
  return kept;
}

FoldedWeights WideWeights(const Int8Weights& weights) {
  FoldedWeights wide;
  wide.filter.assign(weights.values.begin(), weights.values.end());
  return wide;
}

// Sums in float32 where there is no int8 primitive: exact as long as they stay below 2^24.
absl::Status SumWide(const KernelContext& ctx, const ConvProblem& problem,
                     PreparedInt8Conv& prepared, const Int8Weights& weights, const float* in,
                     float* sums) {
  if (prepared.wide != nullptr) {
    if (prepared.wide_filter == nullptr || !WeightsStay(ctx)) {
      INTERP_ASSIGN_OR_RETURN(prepared.wide_filter, prepared.wide->Pack(WideWeights(weights)));
    }
    return prepared.wide->Run(ctx, prepared.wide_filter, in, sums);
  }
  const bool last = ctx.attrs<Int8ConvAttrs>().channels_last_dims;
  const ImageView in_view = DenseChannelsLast(ViewImage(ctx.input(kConvInput), last));
  const ImageView out_view = DenseChannelsLast(ViewImage(ctx.output(kConvOutput), last));
  const ImageView filter = ViewImage(ctx.input(kConvFilter).shape, Layout::kPlain, false);
  std::fill_n(sums, out_view.numel(), 0.0F);
  ConvDirect(problem, in_view, in, filter, WideWeights(weights).filter.data(), out_view, sums,
             ctx.num_threads());
  return absl::OkStatus();
}

// Sums first, then all that follows them.
template <typename Out>
absl::Status RunInTwo(const KernelContext& ctx, const ConvProblem& problem,
                      PreparedInt8Conv& prepared, const Int8Weights& weights, const int8_t* in,
                      Out* out) {
  const Int8Epilogue& epilogue = ctx.state<Int8ConvState>().epilogue;
  const int64_t out_size = ctx.output(kConvOutput).numel();
  const int64_t pixels = out_size / problem.out_channels;
  const int64_t in_size = ctx.input(kConvInput).numel();
  const bool whole = prepared.sums != nullptr;
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(sizeof(float) * (out_size + (whole ? 0 : in_size))));
  if (whole) {
    auto* const sums = work.data<int32_t>();
    INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const dnnl::memory> filter,
                            Packed(ctx, *prepared.sums, weights, prepared.filter));
    INTERP_RETURN_IF_ERROR(prepared.sums->Run(ctx, filter, in, sums));
    FinishSums(epilogue, pixels, sums, ctx.num_threads(), out);
    return absl::OkStatus();
  }
  auto* const sums = work.data<float>();
  float* const wide = sums + out_size;
  ConvertElements(ctx.num_threads(), in, in_size, wide);
  INTERP_RETURN_IF_ERROR(SumWide(ctx, problem, prepared, weights, wide, sums));
  FinishSums(epilogue, pixels, sums, ctx.num_threads(), out);
  return absl::OkStatus();
}

template <typename Out>
absl::Status RunChannelsLast(const KernelContext& ctx, const ConvProblem& problem, const int8_t* in,
                             Out* out) {
  UseThreads(ctx.num_threads());
  auto& state = ctx.state<Int8ConvState>();
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const Int8Weights> weights, Weights(ctx));
  FillEpilogue(ctx, *weights, state.epilogue);
  INTERP_ASSIGN_OR_RETURN(PreparedInt8Conv* const prepared, Prepare(ctx, problem, state.epilogue));
  state.last = prepared;
  if (prepared->fused == nullptr) return RunInTwo(ctx, problem, *prepared, *weights, in, out);
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const dnnl::memory> filter,
                          Packed(ctx, *prepared->fused, *weights, prepared->filter));
  return prepared->fused->Run(ctx, filter, in, out);
}

template <typename Out>
absl::Status RunAs(const KernelContext& ctx, const ConvProblem& problem) {
  const auto& attrs = ctx.attrs<Int8ConvAttrs>();
  const auto body = [&](const int8_t* in, Out* out) {
    return RunChannelsLast(ctx, problem, in, out);
  };
  return WithChannelsLast<int8_t, Out>(ctx, ctx.input(kConvInput), ctx.output(kConvOutput),
                                       attrs.channels_last_dims, body,
                                       attrs.fuse_residual ? &ctx.input(kConvResidual) : nullptr);
}

absl::Status Run(KernelContext& ctx) {
  if (ctx.output(kConvOutput).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem,
                          ResolveConv(ctx.attrs<Int8ConvAttrs>(), ctx.input(kConvInput).shape,
                                      ctx.input(kConvFilter).shape));
  if (ctx.output(kConvOutput).dtype == DType::kInt8) return RunAs<int8_t>(ctx, problem);
  return RunAs<float>(ctx, problem);
}

absl::Status CheckScalar(const InferContext& ctx, int slot, absl::string_view name) {
  const Tensor* const scale = ctx.optional_input(slot);
  if (scale == nullptr || (scale->dtype == DType::kFloat32 && scale->numel() == 1)) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' is ", DescribeType(*scale),
                         ", expected one element of float32");
}

absl::Status CheckDTypes(const InferContext& ctx) {
  const DType filter = ctx.input(kConvFilter).dtype;
  if (filter != DType::kFloat32 && filter != DType::kInt8) {
    return InvalidArgument("input 'Filter' is ", DescribeType(ctx.input(kConvFilter)),
                           ", expected float32 or int8");
  }
  for (const int slot : {kConvBias, kConvResidual, kFilterScale}) {
    const Tensor* const tensor = ctx.optional_input(slot);
    if (tensor == nullptr || tensor->dtype == DType::kFloat32) continue;
    return InvalidArgument("what follows the sums is ", DescribeType(*tensor),
                           ", expected float32");
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckDTypes(ctx));
  INTERP_RETURN_IF_ERROR(CheckScalar(ctx, kInputScale, "InputScale"));
  INTERP_RETURN_IF_ERROR(CheckScalar(ctx, kOutputScale, "OutputScale"));
  if (ctx.has_input(kOutputScale) && ctx.attrs<Int8ConvAttrs>().fuse_residual) {
    return InvalidArgument("'ResidualData' and 'OutputScale' do not go together");
  }
  const Shape& filter = ctx.input(kConvFilter).shape;
  if (filter.rank() == 4 && filter.numel(1, 4) > kLongestInt8Sum) {
    return InvalidArgument("input 'Filter' has shape ", ToString(filter), ": sums of more than ",
                           kLongestInt8Sum, " products do not fit int32");
  }
  return InferConv(ctx);
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kConvOutput,
          ctx.input(kOutputScale) == DType::kUndefined ? DType::kFloat32 : DType::kInt8);
}

int64_t Flops(const OpContext& ctx) {
  return ConvFlops(ctx.output(kConvOutput), ctx.input(kConvFilter));
}

OpDef Def() {
  OpDef def = {
      .type = "int8_conv2d",
      .inputs = {{"Input"},
                 {"Filter", kAnyDType | kAnyLayout},
                 {"Bias", kOptional | kAnyDType},
                 {"ResidualData", kOptional | kAnyDType}},
      .outputs = {{"Output"}},
      .parse = ParseAttrs<Int8ConvAttrs, ReadInt8ConvAttrs>,
      .infer_dtype = InferDTypes,
      .infer = Infer,
      .kernels = {{DType::kInt8, Run}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .inplace = {{kConvResidual, kConvOutput}},
      .flops = Flops,
  };
  for (const absl::string_view name : {"BnScale", "BnBias", "BnMean", "BnVariance"}) {
    def.inputs.push_back({name, kOptional | kAnyDType});
  }
  def.inputs.push_back({"InputScale", kAnyDType});
  def.inputs.push_back({"FilterScale", kOptional | kAnyDType});
  def.inputs.push_back({"OutputScale", kOptional | kAnyDType});
  return def;
}

INTERP_REGISTER_OP(Def());

}  // namespace
}  // namespace interp::nn
