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

}  // namespace interp
