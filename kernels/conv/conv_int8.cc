// int8_conv2d: the convolution of an int8 image and a filter that is, or is to be, quantised:
//   Output = activation(batch_norm(sums * InputScale * FilterScale / range + Bias) + ResidualData)
// Sums of products are taken in int32. The slots up to BnVariance and the attributes of those parts
// are as for fused_conv2d (conv.cc); Int8Attrs (int8_weights.h) has the others. With OutputScale,
// Output is that result on a grid, as int8; else it is float32. Made by the pass `int8`.
#include <algorithm>
#include <cmath>

#include "kernels/conv/int8_conv.h"
#include "kernels/nn/with_channels_last.h"

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

bool WeightsStay(const KernelContext& ctx) {
  return WeightsAreConstant(ctx, ctx.attrs<Int8ConvAttrs>()) && AbsentOrConstant(ctx, kFilterScale);
}

bool ScalesStay(const KernelContext& ctx) {
  return ctx.input_is_constant(kInputScale) && AbsentOrConstant(ctx, kOutputScale);
}

// Joins a batch norm and the bias to factors and bias.
void FoldChannels(const KernelContext& ctx, Int8Weights& weights) {
  const auto& attrs = ctx.attrs<Int8ConvAttrs>();
  const size_t channels = weights.factors.size();
  weights.bias.assign(channels, 0);
  if (const Tensor* bias = ctx.optional_input(kConvBias)) weights.bias = ChannelValues(*bias);
  if (attrs.batch_norm) {
    const std::vector<float> scale = ChannelValues(ctx.input(attrs.slots.batch_norm));
    const std::vector<float> shift = ChannelValues(ctx.input(attrs.slots.batch_norm + 1));
    const std::vector<float> mean = ChannelValues(ctx.input(attrs.slots.batch_norm + 2));
    const std::vector<float> variance = ChannelValues(ctx.input(attrs.slots.batch_norm + 3));
    for (size_t c = 0; c < channels; ++c) {
      const double factor = scale[c] / std::sqrt(static_cast<double>(variance[c]) + attrs.epsilon);
      weights.factors[c] = static_cast<float>(weights.factors[c] * factor);
      weights.bias[c] = static_cast<float>((weights.bias[c] - mean[c]) * factor + shift[c]);
    }
  }
  NeutralizeZeroFactors(weights);
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

template <typename Out>
absl::Status RunChannelsLast(const KernelContext& ctx, const ConvProblem& problem, const int8_t* in,
                             Out* out) {
  auto& state = ctx.state<Int8State>();
  const bool weights_stay = WeightsStay(ctx);
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const Int8Weights> weights,
                          WeightsOf(ctx, weights_stay, [&] { return MakeWeights(ctx); }));
  const auto& attrs = ctx.attrs<Int8ConvAttrs>();
  FillEpilogue(*weights, ctx.input(kInputScale), ctx.optional_input(kOutputScale), attrs.int8,
               state.epilogue);
  state.epilogue.residual = attrs.fuse_residual;
  state.epilogue.activation = attrs.activation;
  const Int8Conv::Case current = {problem, *weights, state.epilogue, weights_stay, ScalesStay(ctx)};
  return state.conv.Run(ctx, current, in, out);
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
  INTERP_RETURN_IF_ERROR(CheckInt8Scale(ctx.optional_input(kInputScale), "InputScale"));
  INTERP_RETURN_IF_ERROR(CheckInt8Scale(ctx.optional_input(kOutputScale), "OutputScale"));
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
