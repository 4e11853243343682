// Tensors for the tests of ops on int8.
#pragma once

#include <random>
#include <vector>

#include "core/tensor.h"

namespace interp::testing {

// Whole numbers from -127 to 127, other ones for each seed.
template <typename T>
Tensor Whole(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> values(static_cast<size_t>(shape.numel()));
  for (T& value : values) value = static_cast<T>(static_cast<int>(random() % 255) - 127);
  return Tensor::Of<T>(shape, values);
}

}  // namespace interp::testing
