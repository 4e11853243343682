// The shapes that inputs of ops must have.
#pragma once

#include "absl/strings/string_view.h"
#include "core/op_context.h"

namespace interp {

// InvalidArgument unless the input called `name` has the shape `expected`.
inline absl::Status CheckInputShape(const Tensor& input, absl::string_view name,
                                    const Shape& expected) {
  if (input.shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(input.shape), ", expected ",
                         ToString(expected));
}
inline absl::Status CheckInputShape(const OpContext& ctx, int slot, absl::string_view name,
                                    const Shape& expected) {
  return CheckInputShape(ctx.input(slot), name, expected);
}
// The same for an input that need not be there.
inline absl::Status CheckOptionalShape(const OpContext& ctx, int slot, absl::string_view name,
                                       const Shape& expected) {
  return ctx.has_input(slot) ? CheckInputShape(ctx, slot, name, expected) : absl::OkStatus();
}

}  // namespace interp
