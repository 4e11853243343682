#include "kernels/optimizer/definition.h"

namespace interp::optimizer {
namespace {

constexpr SlotPair kMasterPair = {"MasterParam", "MasterParamOut", kOptional, kOptional};

absl::Status CheckFloats(const Tensor* tensor, absl::string_view name) {
  if (tensor == nullptr) return InvalidArgument("'", name, "' has an empty argument");
  if (IsFloating(tensor->dtype)) return absl::OkStatus();
  return InvalidArgument("'", name, "' is ", DescribeType(*tensor), ", expected floats");
}

absl::Status CheckOneFloat(const Tensor* tensor, absl::string_view name) {
  INTERP_RETURN_IF_ERROR(CheckFloats(tensor, name));
  if (tensor->numel() == 1) return absl::OkStatus();
  return InvalidArgument("'", name, "' is ", DescribeType(*tensor), ", expected one element");
}

absl::Status CheckLikeParam(const Tensor* tensor, const Tensor& param, absl::string_view name) {
  INTERP_RETURN_IF_ERROR(CheckFloats(tensor, name));
  // Paddle clips by a norm of shape [1], and the gradient of a parameter of shape [] becomes [1].
  const bool single = tensor->numel() == 1 && param.numel() == 1;
  if (single || tensor->shape == param.shape) return absl::OkStatus();
  return InvalidArgument("'", name, "' has shape ", ToString(tensor->shape),
                         ", expected that of 'Param', ", ToString(param.shape));
}

// Checks the arguments of a pair of slots, of which there are as many as parameters or none, and
// gives the outputs their shapes.
absl::Status InferPair(InferContext& ctx, int output, bool scalar, const SlotPair& names) {
  const auto params = ctx.inputs(kParam);
  const auto inputs = ctx.inputs(InputOf(output));
  const auto outputs = ctx.outputs(output);
  if (inputs.size() != outputs.size() || (!inputs.empty() && inputs.size() != params.size())) {
    return InvalidArgument("'", names.in, "' has ", inputs.size(), " arguments and '", names.out,
                           "' ", outputs.size(), ", expected as many as 'Param', ", params.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    INTERP_RETURN_IF_ERROR(scalar ? CheckOneFloat(inputs[i], names.in)
                                  : CheckLikeParam(inputs[i], *params[i], names.in));
    if (outputs[i] == nullptr) return InvalidArgument("'", names.out, "' has an empty argument");
    outputs[i]->shape = inputs[i]->shape;
    outputs[i]->lod = inputs[i]->lod;
  }
  return absl::OkStatus();
}

absl::Status CheckRates(const InferContext& ctx) {
  const auto rates = ctx.inputs(kLearningRate);
  const size_t params = ctx.inputs(kParam).size();
  if (rates.size() > 1 && rates.size() != params) {
    return InvalidArgument("'LearningRate' has ", rates.size(), " arguments, expected 1 or ",
                           params);
  }
  for (const Tensor* rate : rates) {
    INTERP_RETURN_IF_ERROR(CheckOneFloat(rate, "LearningRate"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckScalar(const InferContext& ctx, int slot, absl::string_view name) {
  return ctx.has_input(slot) ? CheckOneFloat(&ctx.input(slot), name) : absl::OkStatus();
}

absl::Status CheckSkipUpdate(const InferContext& ctx, int slot) {
  if (!ctx.has_input(slot)) return absl::OkStatus();
  const Tensor& skip = ctx.input(slot);
  if (skip.dtype == DType::kBool && skip.numel() == 1) return absl::OkStatus();
  return InvalidArgument("'SkipUpdate' is ", DescribeType(skip), ", expected one bool");
}

namespace internal {

absl::Status CheckGrads(const InferContext& ctx) {
  const auto params = ctx.inputs(kParam);
  const auto grads = ctx.inputs(kGrad);
  if (grads.size() != params.size()) {
    return InvalidArgument("'Grad' has ", grads.size(), " arguments, 'Param' ", params.size());
  }
  for (size_t i = 0; i < grads.size(); ++i) {
    INTERP_RETURN_IF_ERROR(CheckFloats(params[i], "Param"));
    // Of selected rows the kernel sees the shape.
    if (InputIsRows(ctx, kGrad, i)) continue;
    INTERP_RETURN_IF_ERROR(CheckLikeParam(grads[i], *params[i], "Grad"));
  }
  return absl::OkStatus();
}

absl::Status InferButGrad(InferContext& ctx, absl::Span<const SlotPair> states,
                          absl::Span<const SlotPair> scalars) {
  INTERP_RETURN_IF_ERROR(CheckRates(ctx));
  INTERP_RETURN_IF_ERROR(InferPair(ctx, kParamOut, /*scalar=*/false, {"Param", "ParamOut"}));
  int output = kFirstStateOut;
  for (const SlotPair& names : states) {
    INTERP_RETURN_IF_ERROR(InferPair(ctx, output++, /*scalar=*/false, names));
  }
  for (const SlotPair& names : scalars) {
    // Before Paddle 1.7 other ops advanced the powers of adam.
    if (!ctx.has_output(output) && names.out_flags == kOptional) {
      INTERP_RETURN_IF_ERROR(CheckScalar(ctx, InputOf(output++), names.in));
      continue;
    }
    INTERP_RETURN_IF_ERROR(InferPair(ctx, output++, /*scalar=*/true, names));
  }
  return InferPair(ctx, output, /*scalar=*/false, kMasterPair);
}

OpDef DefOf(absl::string_view type, std::vector<SlotPair> pairs, int grad_flags, int list_flags) {
  OpDef def{.type = type, .inputs = {}, .outputs = {}};
  def.inputs = {{"Param", list_flags},
                {"Grad", kAnyDType | list_flags | grad_flags},
                {"LearningRate", kAnyDType | list_flags}};
  def.outputs = {{"ParamOut", list_flags}};
  pairs.push_back(kMasterPair);
  for (const SlotPair& pair : pairs) {
    def.inputs.push_back({pair.in, kAnyDType | list_flags | pair.in_flags});
    def.outputs.push_back({pair.out, list_flags | pair.out_flags});
  }
  for (int output = 0; output < static_cast<int>(def.outputs.size()); ++output) {
    def.inplace.push_back({InputOf(output), output, /*each=*/true});
  }
  return def;
}

}  // namespace internal
}  // namespace interp::optimizer
