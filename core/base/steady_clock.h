// The clock of observers and deadlines.
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

// When that time will have passed; max() where the clock does not reach so far.
inline std::chrono::steady_clock::time_point DeadlineAfter(std::chrono::nanoseconds timeout) {
  constexpr auto kLast = std::chrono::steady_clock::time_point::max();
  const auto now = std::chrono::steady_clock::now();
  return timeout >= kLast - now ? kLast : now + timeout;
}

}  // namespace interp
