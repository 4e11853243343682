// The shapes of gradients that gradient ops take.
#pragma once

#include "absl/strings/string_view.h"
#include "core/op_context.h"
#include "kernels/util/check_shape.h"

namespace interp {

// InvalidArgument unless the input called `name` has the shape of the value it is the gradient of,
// or both have one element: programs of older releases have gradients of shape [1] for scalars.
inline absl::Status CheckGradientShape(const Tensor& gradient, absl::string_view name,
                                       const Shape& value) {
  const bool other = gradient.shape != value;
  if (other && gradient.numel() == 1 && value.numel() == 1) return absl::OkStatus();
  return CheckInputShape(gradient, name, value);
}
inline absl::Status CheckGradientShape(const OpContext& ctx, int slot, absl::string_view name,
                                       const Shape& value) {
  return CheckGradientShape(ctx.input(slot), name, value);
}

// Gives output `grad`, called `name`@GRAD, the shape of the optional input `slot`. InvalidArgument
// for the gradient of an input that is missing.
inline absl::Status ShareOptionalShape(InferContext& ctx, int slot, absl::string_view name,
                                       int grad) {
  if (ctx.has_input(slot)) {
    ctx.ShareShape(slot, grad);
  } else if (ctx.has_output(grad)) {
    return InvalidArgument("output '", name, "@GRAD' is the gradient of input '", name,
                           "', which is missing");
  }
  return absl::OkStatus();
}

}  // namespace interp
