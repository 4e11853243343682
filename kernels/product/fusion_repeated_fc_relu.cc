// fusion_repeated_fc_relu: X through one fc with relu after the other, as Paddle's inference passes
// fuse them. ReluOut are the results of all but the last, which is Out.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/product/product.h"
#include "kernels/util/all_present.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kW = 1;
constexpr int kBias = 2;
constexpr int kReluOut = 0;
constexpr int kOut = 1;

absl::Status Infer(InferContext& ctx) {
  const auto weights = ctx.inputs(kW), biases = ctx.inputs(kBias);
  const auto relu_outs = ctx.outputs(kReluOut);
  INTERP_RETURN_IF_ERROR(CheckAllPresent(weights, "W"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(biases, "Bias"));
  Shape shape = ctx.input(kX).shape;
  if (weights.empty() || biases.size() != weights.size() ||
      relu_outs.size() + 1 != weights.size()) {
    return InvalidArgument("there are ", weights.size(), " W, ", biases.size(), " Bias and ",
                           relu_outs.size(), " ReluOut, expected as many, and one ReluOut less");
  }
  if (shape.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(shape), ", expected a matrix");
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const Shape& w = weights[i]->shape;
    if (w.rank() != 2 || w[0] != shape[1] || biases[i]->numel() != w[1]) {
      return InvalidArgument("layer ", i, " has W ", ToString(w), " and Bias ",
                             ToString(biases[i]->shape), ", expected [", shape[1], ",N] and [N]");
    }
    shape[1] = w[1];
    if (i >= relu_outs.size() || relu_outs[i] == nullptr) continue;
    relu_outs[i]->shape = shape;
    relu_outs[i]->lod.clear();
  }
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status RepeatedFcRelu(KernelContext& ctx) {
  const auto weights = ctx.inputs(kW);
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.outputs(kReluOut), "ReluOut"));
  const T* from = ctx.input(kX).data<T>();
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool last = i + 1 == weights.size();
    Tensor* const out = last ? &ctx.output(kOut) : ctx.outputs(kReluOut)[i];
    Product product = ProductOf(out->shape[0], out->shape[1], weights[i]->shape[0]);
    T* const to = out->mutable_data<T>();
    INTERP_RETURN_IF_ERROR(RunProduct<T>(ctx, product, from, weights[i]->data<T>(),
                                         /*y_constant=*/false, ctx.inputs(kBias)[i]->data<T>(),
                                         to));
    for (int64_t k = 0; k < out->numel(); ++k) to[k] = to[k] > 0 ? to[k] : T{0};
    from = to;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fusion_repeated_fc_relu",
    .inputs = {{"X"}, {"W", kVariadic}, {"Bias", kVariadic}},
    .outputs = {{"ReluOut", kOptional | kVariadic}, {"Out"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, RepeatedFcRelu<float>},
                {DType::kFloat64, RepeatedFcRelu<double>}},
});

}  // namespace
}  // namespace interp::nn
