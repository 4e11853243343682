// Arrays that kernels work on together.
#pragma once

#include <cstdint>

namespace interp::cuda {

// An array that is read and the one that takes its new values: the same memory, as a rule.
struct ArrayUpdate {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t size = 0;  // elements
};

}  // namespace interp::cuda
