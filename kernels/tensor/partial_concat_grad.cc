// partial_concat_grad, partial_sum_grad: Out@GRAD where the columns came from, 0 elsewhere.
#include <algorithm>

#include "kernels/tensor/partial_columns.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

template <bool kConcat>
absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PartialColumns part, ResolvePartial(ctx));
  const Shape out = {part.rows, part.count * (kConcat ? part.inputs : 1)};
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  const auto outputs = ctx.outputs(kXGrad);
  if (std::ssize(outputs) > part.inputs) {
    return InvalidArgument("there are ", outputs.size(), " outputs 'X@GRAD' for ", part.inputs,
                           " inputs 'X'");
  }
  for (Tensor* const x_grad : outputs) {
    if (x_grad == nullptr) continue;
    x_grad->shape = ctx.input(kX).shape;
    x_grad->lod = ctx.input(kX).lod;
  }
  return absl::OkStatus();
}

template <typename T, bool kConcat>
absl::Status Run(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PartialColumns part, ResolvePartial(ctx));
  const auto outputs = ctx.outputs(kXGrad);
  const int64_t width = part.count * (kConcat ? part.inputs : 1);
  for (int64_t k = 0; k < std::ssize(outputs); ++k) {
    if (outputs[k] == nullptr) continue;
    T* const to = outputs[k]->mutable_data<T>();
    const T* const from = ctx.input(kOutGrad).data<T>() + (kConcat ? k * part.count : 0);
    std::fill_n(to, part.rows * part.width, T{0});
    for (int64_t row = 0; row < part.rows; ++row) {
      std::copy_n(from + row * width, part.count, to + row * part.width + part.begin);
    }
  }
  return absl::OkStatus();
}

template <bool kConcat>
OpDef GradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kVariadic | kNoNeedBuffer}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional | kVariadic}},
      .parse = ParseAttrs<PartialAttrs, ReadPartialAttrs>,
      .infer = Infer<kConcat>,
      .kernels = {{DType::kFloat32, Run<float, kConcat>}, {DType::kFloat64, Run<double, kConcat>}},
  };
}

INTERP_REGISTER_OP(GradDef<true>("partial_concat_grad"));
INTERP_REGISTER_OP(GradDef<false>("partial_sum_grad"));

}  // namespace
}  // namespace interp
