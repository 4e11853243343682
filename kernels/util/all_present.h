// For ops that read arguments which a program may leave out.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/op_def.h"
#include "core/status.h"

namespace interp {

// InvalidArgument when one of the arguments of a variadic slot is @EMPTY@.
inline absl::Status CheckAllPresent(absl::Span<const Tensor* const> arguments,
                                    absl::string_view slot) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == nullptr) {
      return InvalidArgument("'", slot, "' argument ", i, " is @EMPTY@");
    }
  }
  return absl::OkStatus();
}

// InvalidArgument without input `slot`, which the op needs for the attributes or inputs it has.
inline absl::Status CheckPresent(const OpContext& ctx, int slot, absl::string_view name) {
  if (ctx.has_input(slot)) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is missing");
}

}  // namespace interp
