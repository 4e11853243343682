// EventCount: where threads sleep until something has changed, without a lost wake-up.
//
// The waiter announces itself, looks once more at what it waits for, and then sleeps; the notifier
// makes the change and then looks for waiters. Both do so by a read-modify-write of one counter:
// if the notifier's comes first, the waiter's reads from it and so sees the change; else the
// notifier sees the waiter.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "core/base/wait_until.h"

namespace interp::engine {

// Looks, some 20 us of them, before a thread sleeps: waking it takes longer.
inline constexpr int kSpinsBeforeSleep = 2000;

// Thread-safety: all methods.
class EventCount {
 public:
  using Clock = std::chrono::steady_clock;

  // Announces a waiter. Look at the condition afterwards, then call Wait or Cancel.
  uint32_t Prepare() {
    waiters_.fetch_add(1);
    return epoch_.load();
  }
  void Cancel() { waiters_.fetch_sub(1); }
  // Sleeps until notified after `epoch` was read, or until the deadline.
  void Wait(uint32_t epoch, Clock::time_point deadline = Clock::time_point::max()) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      WaitUntil(changed_, lock, deadline, [&] { return epoch_.load() != epoch; });
    }
    waiters_.fetch_sub(1);
  }

  // Enough in place of a notification where the change was a sequentially consistent store and the
  // waiter's last look is a sequentially consistent load; spares the read-modify-write.
  bool has_waiters() const { return waiters_.load() > 0; }
  void NotifyOne() {
    if (Raise()) changed_.notify_one();
  }
  void NotifyAll() {
    if (Raise()) changed_.notify_all();
  }

 private:
  bool Raise() {
    if (waiters_.fetch_add(0) == 0) return false;
    std::lock_guard<std::mutex> lock(mutex_);
    epoch_.fetch_add(1);
    return true;
  }

  std::atomic<uint32_t> epoch_{0};
  std::atomic<int32_t> waiters_{0};
  std::mutex mutex_;  // orders the raise of epoch_ with falling asleep
  std::condition_variable changed_;
};

}  // namespace interp::engine
