// For fuzz targets that read tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace interp {

// Reads every byte, so that the address sanitizer sees memory that is not theirs.
inline void TouchTensors(const std::vector<NamedTensor>& tensors) {
  uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
    for (size_t i = 0; i < tensor.size_bytes(); ++i) sum += bytes[i];
  }
  volatile uint64_t sink = sum;
  (void)sink;
}

}  // namespace interp
