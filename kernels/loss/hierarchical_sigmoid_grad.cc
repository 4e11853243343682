// hierarchical_sigmoid_grad: at each node on the way, sigmoid(z) - bit, times Out@GRAD. As in
// Paddle, the bounds of z have no part in it.
#include <cmath>

#include "kernels/loss/hierarchical_sigmoid.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/row_gradient.h"

namespace interp {
namespace {

constexpr int kPreOut = 6;
constexpr int kOutGrad = 7;
constexpr int kXGrad = 0;
constexpr int kWGrad = 1;
constexpr int kBiasGrad = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape pre_out, ResolveHsigmoid(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kPreOut, "PreOut", pre_out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", {pre_out[0], 1}));
  ctx.ShareShape(kHsigmoidX, kXGrad);
  ctx.ShareShape(kHsigmoidW, kWGrad);
  if (ctx.has_input(kHsigmoidBias)) {
    ctx.ShareShape(kHsigmoidBias, kBiasGrad);
  } else if (ctx.has_output(kBiasGrad)) {
    return InvalidArgument("there is an output 'Bias@GRAD' but no input 'Bias'");
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status HierarchicalSigmoidGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const auto paths, FindPaths(ctx));
  const Tensor& x = ctx.input(kHsigmoidX);
  const Tensor& w = ctx.input(kHsigmoidW);
  const int64_t width = w.shape[1], longest = ctx.input(kPreOut).shape[1];
  std::vector<int64_t> used;
  for (const auto& path : paths) {
    for (const TreeNode& node : path) used.push_back(node.row);
  }
  RowGradient<T> w_grad;
  INTERP_RETURN_IF_ERROR(w_grad.Prepare(ctx, kWGrad, w.shape, std::move(used)));
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  Tensor* const bias_grad = ctx.optional_output(kBiasGrad);
  for (Tensor* const tensor : {x_grad, bias_grad}) {
    if (tensor != nullptr) std::fill_n(tensor->mutable_data<T>(), tensor->numel(), T{0});
  }
  for (int64_t i = 0; i < std::ssize(paths); ++i) {
    for (int64_t j = 0; j < std::ssize(paths[i]); ++j) {
      const TreeNode& node = paths[i][j];
      const T sigmoid = T{1} - std::exp(-ctx.input(kPreOut).data<T>()[i * longest + j]);
      const T grad = (sigmoid - (node.bit ? T{1} : T{0})) * ctx.input(kOutGrad).data<T>()[i];
      w_grad.Add(node.row, grad, x.data<T>() + i * width);
      if (bias_grad != nullptr) bias_grad->mutable_data<T>()[node.row] += grad;
      if (x_grad == nullptr) continue;
      T* const to = x_grad->mutable_data<T>() + i * width;
      const T* const row = w.data<T>() + node.row * width;
      for (int64_t k = 0; k < width; ++k) to[k] += grad * row[k];
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "hierarchical_sigmoid_grad",
    .inputs = {{"X"},
               {"W"},
               {"Label", kAnyDType},
               {"PathTable", kOptional | kAnyDType},
               {"PathCode", kOptional | kAnyDType},
               {"Bias", kOptional | kNoNeedBuffer},
               {"PreOut"},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional},
                {"W@GRAD", kOptional | kMayBeRows},
                {"Bias@GRAD", kOptional}},
    .parse = ParseAttrs<HsigmoidAttrs, ReadHsigmoidAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, HierarchicalSigmoidGrad<float>},
                {DType::kFloat64, HierarchicalSigmoidGrad<double>}},
});

}  // namespace
}  // namespace interp
