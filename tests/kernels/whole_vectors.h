// Whether kernels use all of the processor's vectors. Where they do not, oneDNN, which always does,
// is the faster choice for much.
#pragma once

#include "core/machine/processor.h"
#include "kernels/product/gemm_tile.h"

namespace interp::testing {

inline bool UsesWholeVectors() {
  if (ProcessorLevel() == "x86-64-v4") return kVectorBytes == 64;
  if (ProcessorLevel() == "x86-64-v3") return kVectorBytes >= 32;
  return true;
}

}  // namespace interp::testing
