// Copies between tensors, for ops that move data without computing.
#pragma once

#include <cstring>

#include "core/op_def.h"

namespace interp {

// Copies the elements of `in` to `out` unless both are the same memory already, which is how the
// plan realises a view. REQUIRES: same dtype, layout and number of elements.
inline void CopyUnlessShared(const Tensor& in, Tensor& out) {
  if (in.raw_data() == out.raw_data() || in.size_bytes() == 0) return;
  std::memcpy(out.mutable_raw_data(), in.raw_data(), in.size_bytes());
}

}  // namespace interp
