// The vectors that norms scale, shift and add by.
#pragma once

#include "absl/strings/string_view.h"
#include "core/op_context.h"

namespace interp::nn {

// InvalidArgument unless the input, where there is one, has `count` elements, whatever its shape.
inline absl::Status CheckVector(const InferContext& ctx, int slot, absl::string_view name,
                                int64_t count) {
  const Tensor* const vector = ctx.optional_input(slot);
  if (vector == nullptr || vector->numel() == count) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(vector->shape), ", expected ",
                         count, " elements");
}

}  // namespace interp::nn
