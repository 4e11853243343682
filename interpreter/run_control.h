// RunControl: what may end a run early, its first error among them.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "core/status.h"

namespace interp {

// Thread-safety: all methods from any thread, but Begin and Finish, which belong to the caller of a
// run. What is reported between Finish and the next Begin is ignored.
class RunControl {
 public:
  using Clock = std::chrono::steady_clock;

  void Begin(std::optional<Clock::time_point> deadline) {
    std::lock_guard<std::mutex> lock(mutex_);
    deadline_ = deadline;
    first_error_ = absl::OkStatus();
    active_ = true;
    stop_.store(false, std::memory_order_relaxed);
  }

  // Whether no further kernel may start. One relaxed load unless there is a deadline.
  bool ShouldStop() {
    if (deadline_.has_value() && Clock::now() > *deadline_) {
      Fail(absl::DeadlineExceededError("the run took longer than its time-out"));
    }
    return stop_.load(std::memory_order_relaxed);
  }

  // Keeps the first error and stops the run.
  void Fail(absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!active_) return;
    if (first_error_.ok()) first_error_ = std::move(status);
    stop_.store(true, std::memory_order_relaxed);
  }

  // Ends the run: the first error, or OK.
  absl::Status Finish() {
    std::lock_guard<std::mutex> lock(mutex_);
    active_ = false;
    return first_error_;
  }

 private:
  std::optional<Clock::time_point> deadline_;  // constant during a run
  std::atomic<bool> stop_{false};  // a hint to stop early; the error itself is under the mutex
  std::mutex mutex_;               // guards the members below
  bool active_ = false;
  absl::Status first_error_;
};

}  // namespace interp
