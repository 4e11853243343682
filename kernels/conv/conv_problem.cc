#include "kernels/conv/conv_problem.h"

#include <array>

#include "kernels/util/check_shape.h"
#include "kernels/util/flops.h"

namespace interp::nn {
namespace {

// How Paddle-Lite's optimiser says it (lite/core/optimizer/mir/fusion/conv_activation_fuser.cc).
void ReadLiteActivation(AttrReader& reader, FusedActivation& activation) {
  if (!reader.Bool("with_act", false)) return;
  const std::string type = reader.String("act_type", "");
  if (type == "relu") {
    activation = {ActivationKind::kRelu};
  } else if (type == "relu6") {
    activation = {ActivationKind::kRelu6, reader.Float("fuse_brelu_threshold", 6.0F)};
  } else if (type == "leaky_relu") {
    activation = {ActivationKind::kLeakyRelu, reader.Float("leaky_relu_alpha", 0.02F)};
  } else if (type == "hard_swish" &&
             reader.Float("hard_swish_threshold", 6) == reader.Float("hard_swish_scale", 6)) {
    const float scale = reader.Float("hard_swish_scale", 6);
    activation = {ActivationKind::kHardSwish, 1 / scale,
                  reader.Float("hard_swish_offset", 3) / scale};
  } else {
    reader.Fail(absl::StrCat("attribute 'act_type' is \"", type, "\", which cannot be fused"));
  }
}

ConvAttrs ReadConvAttrs(AttrReader& reader, int spatial_rank) {
  ConvAttrs attrs;
  attrs.window = ReadWindow(reader, spatial_rank, /*dilations=*/true);
  attrs.groups = reader.Int("groups", 1);
  if (attrs.groups < 1) reader.Fail(absl::StrCat("attribute 'groups' is ", attrs.groups));
  attrs.channels_last_dims = HasChannelsLastDims(reader.String("data_format", "NCHW"));
  attrs.fuse_residual =
      reader.Bool("fuse_residual", false) || reader.Bool("fuse_residual_connection", false);
  const auto is_bound = [&reader](absl::string_view name) {
    const Slot* slot = reader.op().FindInput(name);
    return slot != nullptr && !slot->args.empty();
  };
  attrs.batch_norm = is_bound("BnScale");
  attrs.pre_affine = is_bound("PreScale") || is_bound("PreShift");
  attrs.post_affine = is_bound("PostScale") || is_bound("PostShift");
  attrs.epsilon = reader.Float("epsilon", 1e-5F);
  attrs.gives_float32 = reader.Bool("force_fp32_output", false);
  attrs.activation = ReadActivation(reader, "fuse_activation");
  // How programs that Paddle fused before version 2.0 say it.
  if (reader.Bool("fuse_relu", false)) attrs.activation = {ActivationKind::kRelu};
  if (reader.Bool("fuse_brelu", false)) {
    attrs.activation = {ActivationKind::kRelu6, reader.Float("fuse_brelu_threshold", 6.0F)};
  }
  ReadLiteActivation(reader, attrs.activation);
  return attrs;
}

absl::Status CheckFolded(const Tensor* tensor, absl::string_view name, int64_t channels) {
  if (tensor == nullptr) return InvalidArgument("input '", name, "' is missing");
  INTERP_RETURN_IF_ERROR(CheckVector(tensor, name, channels));
  if (tensor->dtype == DType::kFloat32 || tensor->dtype == DType::kBFloat16) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' is ", DescribeType(*tensor), ", expected float32");
}

}  // namespace

absl::Status CheckFoldedInputs(const InferContext& ctx, const ConvAttrs& attrs, int64_t channels) {
  const ConvSlots& slots = attrs.slots;
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, slots.bias, "Bias", channels));
  if (attrs.batch_norm) {
    constexpr absl::string_view kNames[] = {"BnScale", "BnBias", "BnMean", "BnVariance"};
    for (int i = 0; i < 4; ++i) {
      INTERP_RETURN_IF_ERROR(
          CheckFolded(ctx.optional_input(slots.batch_norm + i), kNames[i], channels));
    }
  }
  const auto check_numbers = [&ctx](int slot, std::array<absl::string_view, 2> names) {
    for (int i = 0; i < 2; ++i) {
      if (!ctx.has_input(slot + i)) continue;
      INTERP_RETURN_IF_ERROR(CheckFolded(ctx.optional_input(slot + i), names[i], /*channels=*/1));
    }
    return absl::OkStatus();
  };
  if (attrs.pre_affine) {
    INTERP_RETURN_IF_ERROR(check_numbers(slots.pre_affine, {"PreScale", "PreShift"}));
  }
  if (attrs.post_affine) {
    INTERP_RETURN_IF_ERROR(check_numbers(slots.post_affine, {"PostScale", "PostShift"}));
  }
  return absl::OkStatus();
}

namespace {

// Checks what is added to or folded into the convolution.
absl::Status CheckExtras(const InferContext& ctx, const ConvAttrs& attrs, int64_t channels,
                         const Shape& out) {
  INTERP_RETURN_IF_ERROR(CheckFoldedInputs(ctx, attrs, channels));
  if (attrs.fuse_residual) {
    const Tensor* residual = ctx.optional_input(kConvResidual);
    if (residual == nullptr || !(residual->shape == out)) {
      return InvalidArgument("input 'ResidualData' is ",
                             residual == nullptr ? "absent" : DescribeType(*residual),
                             ", expected shape ", ToString(out));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ConvAttrs ReadConv2dAttrs(AttrReader& reader) { return ReadConvAttrs(reader, 2); }
ConvAttrs ReadConv3dAttrs(AttrReader& reader) { return ReadConvAttrs(reader, 3); }

double ConvProblem::flops() const {
  double count = 2.0 * static_cast<double>(batch * out_channels * group_in());
  for (int i = 0; i < window.rank; ++i) {
    count *= static_cast<double>(window[i].out) * static_cast<double>(TapsOf(window[i]).count);
  }
  return count;
}

int64_t ConvFlops(const Tensor& out, const Tensor& filter) {
  if (filter.shape.rank() == 0) return 0;
  const int64_t per_element = filter.shape.numel(1, filter.shape.rank());
  return ToFlops(2.0 * static_cast<double>(out.numel()) * static_cast<double>(per_element));
}

absl::StatusOr<ConvProblem> ResolveConv(const ConvAttrs& attrs, const Shape& input,
                                        const Shape& filter) {
  if (input.rank() != 4 && input.rank() != 5) {
    return InvalidArgument("input 'Input' has shape ", ToString(input),
                           ", expected 4 dims (an image batch) or 5 (volumes)");
  }
  if (filter.rank() != input.rank()) {
    return InvalidArgument("input 'Filter' has ", filter.rank(), " dims ", ToString(filter),
                           ", expected ", input.rank(), " as 'Input' ", ToString(input));
  }
  const ImageView in = ViewImage(input, Layout::kPlain, attrs.channels_last_dims);
  ConvProblem problem;
  problem.batch = in.batch();
  problem.in_channels = in.channels();
  problem.out_channels = filter[0];
  problem.groups = attrs.groups;
  if (filter[1] == 0 || in.channels() % attrs.groups != 0 ||
      in.channels() / attrs.groups != filter[1]) {
    return InvalidArgument("input 'Input' ", ToString(input), " has ", in.channels(),
                           " channels, expected ", filter[1], " x ", attrs.groups, " by 'Filter' ",
                           ToString(filter), " and groups");
  }
  if (filter[0] == 0 || filter[0] % attrs.groups != 0) {
    return InvalidArgument("input 'Filter' has shape ", ToString(filter),
                           ", whose output channels are no multiple of groups ", attrs.groups);
  }
  INTERP_ASSIGN_OR_RETURN(problem.window, ResolveWindow(attrs.window, in.dims_span().subspan(2),
                                                        filter.dims().subspan(2)));
  INTERP_RETURN_IF_ERROR(FitWindow(problem.window, /*ceil_mode=*/false));
  return problem;
}

Shape ConvOutputShape(const ConvProblem& problem, bool channels_last_dims) {
  Shape out;
  out.push_back(problem.batch);
  if (!channels_last_dims) out.push_back(problem.out_channels);
  for (int i = 0; i < problem.window.rank; ++i) out.push_back(problem.window[i].out);
  if (channels_last_dims) out.push_back(problem.out_channels);
  return out;
}

absl::Status InferConv(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const Tensor& input = ctx.input(kConvInput);
  INTERP_ASSIGN_OR_RETURN(const ConvProblem problem,
                          ResolveConv(attrs, input.shape, ctx.input(kConvFilter).shape));
  const Shape out = ConvOutputShape(problem, attrs.channels_last_dims);
  INTERP_RETURN_IF_ERROR(CheckExtras(ctx, attrs, problem.out_channels, out));
  ctx.SetShape(kConvOutput, out);
  return absl::OkStatus();
}

}  // namespace interp::nn
