// CheckAllPresent: for ops that read all arguments of a variadic slot.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// InvalidArgument when one of them is @EMPTY@.
inline absl::Status CheckAllPresent(absl::Span<const Tensor* const> arguments,
                                    absl::string_view slot) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == nullptr) {
      return InvalidArgument("'", slot, "' argument ", i, " is @EMPTY@");
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
