// How many positions sequence_mask sets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace interp {

// The number of j with 0 <= j < value and j < limit; 0 where `value` is NaN.
template <typename T>
int64_t CountBelow(T value, int64_t limit) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!(value > 0)) return 0;  // NaN as well
    if (value >= static_cast<T>(limit)) return limit;
    return static_cast<int64_t>(std::ceil(value));
  } else {
    return std::clamp<int64_t>(value, 0, limit);
  }
}

}  // namespace interp
