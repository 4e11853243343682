// Algorithms: which ways of computing the same thing kernels may choose from.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

enum class Algorithms : int8_t {
  kFast,    // what is expected to be fastest for the sizes at hand
  kDirect,  // sums as the definition of the op has them; no transforms
};

inline absl::string_view Name(Algorithms algorithms) {
  return algorithms == Algorithms::kFast ? "fast" : "direct";
}

inline absl::StatusOr<Algorithms> AlgorithmsFromName(absl::string_view name) {
  for (const Algorithms algorithms : {Algorithms::kFast, Algorithms::kDirect}) {
    if (name == Name(algorithms)) return algorithms;
  }
  return InvalidArgument("'", name, "' is neither fast nor direct");
}

}  // namespace interp
