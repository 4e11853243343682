// WaitUntil: waiting on a condition variable with or without a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace interp {

// Waits until `holds()` or until the deadline has come; whether it holds then. A deadline of max()
// is none: given to wait_until it may overflow.
template <typename Holds>
bool WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
               std::chrono::steady_clock::time_point deadline, const Holds& holds) {
  if (deadline != std::chrono::steady_clock::time_point::max()) {
    return changed.wait_until(lock, deadline, holds);
  }
  changed.wait(lock, holds);
  return true;
}

}  // namespace interp
