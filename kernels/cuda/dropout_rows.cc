// Rows of dropout and its gradient.
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/row.h"
#include "kernels/nn/dropout.h"

namespace interp::cuda {
namespace {

using nn::DropoutAttrs;

absl::Status Forward(KernelContext& ctx) {
  constexpr int kX = 0;
  constexpr int kSeed = 1;
  constexpr int kMask = 1;
  INTERP_ASSIGN_OR_RETURN(const DropoutAttrs attrs, nn::DropoutAttrsOf(ctx));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(0);
  if (attrs.test) {
    const float factor = attrs.upscale_in_train ? 1.0f : 1.0f - attrs.probability;
    if (factor == 1.0f && out.raw_data() == x.raw_data()) return absl::OkStatus();
    return MaskedScale(
        x.dtype,
        {.x = x.raw_data(), .factor = factor, .out = out.mutable_raw_data(), .size = x.numel()},
        StreamOf(ctx));
  }
  const Tensor* const seed = ctx.optional_input(kSeed);
  Tensor* const mask = ctx.optional_output(kMask);
  INTERP_ASSIGN_OR_RETURN(const RandomNumbers random, RandomNumbersOf(ctx));
  return Dropout(x.dtype,
                 {.x = x.raw_data(),
                  .size = x.numel(),
                  .probability = attrs.probability,
                  .divisor = attrs.upscale_in_train ? 1.0f - attrs.probability : 1.0f,
                  .random = random,
                  .seed = attrs.seed,
                  .seed_data = seed != nullptr ? seed->raw_data() : nullptr,
                  .seed_dtype = seed != nullptr ? seed->dtype : DType::kInt32,
                  .out = out.mutable_raw_data(),
                  .mask = mask != nullptr ? mask->mutable_data<uint8_t>() : nullptr},
                 StreamOf(ctx));
}

absl::Status Gradient(KernelContext& ctx) {
  constexpr int kMask = 0;
  constexpr int kOutGrad = 1;
  Tensor* const x_grad = ctx.optional_output(0);
  if (x_grad == nullptr) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const DropoutAttrs attrs, nn::DropoutAttrsOf(ctx));
  MaskedScaleArguments args = {.x = ctx.input(kOutGrad).raw_data(),
                               .out = x_grad->mutable_raw_data(),
                               .size = x_grad->numel()};
  const float rest = 1.0f - attrs.probability;
  if (attrs.test) {
    args.factor = attrs.upscale_in_train ? 1.0f : rest;
  } else {
    args.mask = static_cast<const uint8_t*>(ctx.input(kMask).raw_data());
    args.divisor = attrs.upscale_in_train && attrs.probability < 1 ? rest : 1.0f;
  }
  return MaskedScale(x_grad->dtype, args, StreamOf(ctx));
}

std::vector<KernelDef> DropoutRows(KernelFn run) {
  return RowsFor({DType::kFloat32, DType::kBFloat16}, run);
}

INTERP_REGISTER_KERNELS("dropout", DropoutRows(Forward));
INTERP_REGISTER_KERNELS("dropout_grad", DropoutRows(Gradient));

}  // namespace
}  // namespace interp::cuda
