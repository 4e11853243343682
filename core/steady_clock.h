// The clock of observers.
#pragma once

#include <chrono>
#include <cstdint>

namespace interp {

// Nanoseconds of the steady clock.
inline int64_t SteadyNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace interp
