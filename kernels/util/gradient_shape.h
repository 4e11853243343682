// The shapes of gradients that gradient ops take.
#pragma once

#include "absl/strings/string_view.h"
#include "core/op_context.h"

namespace interp {

// InvalidArgument unless input `slot`, called `name`, has the shape of the value it is the gradient
// of, or both have one element: programs of older releases have gradients of shape [1] for scalars.
inline absl::Status CheckGradientShape(const OpContext& ctx, int slot, absl::string_view name,
                                       const Shape& value) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape == value || (shape.numel() == 1 && value.numel() == 1)) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected ",
                         ToString(value));
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
