// SpinLock: mutual exclusion for sections of a few instructions.
#pragma once

#include <atomic>
#include <thread>

namespace interp {

// Tells the processor that this thread waits for another.
inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// One atomic exchange to lock, a plain store to unlock. A waiter yields when the holder seems to be
// off its core. Nothing that may block is done under it. Fits std::lock_guard.
class SpinLock {
 public:
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      // Only looks until it is open: an exchange would take the line from the holder.
      for (int spins = 0; locked_.load(std::memory_order_relaxed); ++spins) {
        if (spins > 64) std::this_thread::yield();
        CpuPause();
      }
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace interp
