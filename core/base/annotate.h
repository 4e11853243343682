// Annotate (core/status.h) for functions that return a value or an error.
#pragma once

#include "core/status.h"

namespace interp {

// Returns `value`, an error with "`prefix`: " put in front of its message.
template <typename T>
absl::StatusOr<T> Annotate(absl::StatusOr<T> value, absl::string_view prefix) {
  if (value.ok()) return value;
  return Annotate(value.status(), prefix);
}

}  // namespace interp
