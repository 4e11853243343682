// Elements that are only copied, by their size. Included by `.cu` files alone.
#pragma once

#include "kernels/cuda/values.h"

namespace interp::cuda {

// Calls function(Type<T>()) for an unsigned T of `element_bytes`: 1, 2, 4, 8 or 16.
template <typename Function>
absl::Status WithBytes(int element_bytes, Function function) {
  switch (element_bytes) {
    case 1:
      return function(Type<uint8_t>());
    case 2:
      return function(Type<uint16_t>());
    case 4:
      return function(Type<uint32_t>());
    case 8:
      return function(Type<uint64_t>());
    case 16:
      return function(Type<uint4>());
    default:
      return Unimplemented("elements of ", element_bytes, " bytes on a GPU");
  }
}

}  // namespace interp::cuda
