// RunControl: what may end a run early, its first error among them.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "core/status.h"

namespace interp {

// Of a run, or of the activations of a block within one, which end when the run does. An error
// stops the activation; its instruction then hands the error on to the control around it.
//
// Thread-safety: all methods from any thread, but Begin and Finish, which belong to the caller of a
// run or to the instruction that runs the block. Errors that are reported between Finish and the
// next Begin are ignored.
class RunControl {
 public:
  using Clock = std::chrono::steady_clock;

  // `outer` is borrowed; null for the control of a whole run.
  explicit RunControl(RunControl* outer = nullptr) : outer_(outer), active_(outer != nullptr) {}

  void Begin(std::optional<Clock::time_point> deadline) {
    std::lock_guard<std::mutex> lock(mutex_);
    deadline_ = deadline;
    first_error_ = std::exchange(cancelled_, false) ? Cancelled() : absl::OkStatus();
    timed_out_ = false;
    active_ = true;
    stop_.store(!first_error_.ok(), std::memory_order_relaxed);
  }

  // Stops the run, or, when there is none, the next one as it begins.
  void Cancel() {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = !active_;
    if (active_) StopLocked(Cancelled());
  }

  // Takes back a Cancel that is for the next run.
  void ForgetCancel() {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = false;
  }

  // Whether the run has taken longer than it may. Looks at the clock only when there is a deadline.
  bool Expired() const {
    if (outer_ != nullptr) return outer_->Expired();
    return deadline_.has_value() && Clock::now() > *deadline_;
  }

  // The error of an instruction that was running when the time was up.
  static absl::Status TimedOut() {
    return absl::DeadlineExceededError("running when the run's time-out ended");
  }

  // Whether no further kernel may start. One relaxed load per level unless there is a deadline.
  bool ShouldStop() {
    if (stop_.load(std::memory_order_relaxed)) return true;
    if (outer_ != nullptr) return outer_->ShouldStop();
    if (!Expired()) return false;
    // No error yet: an instruction that is still running can tell more.
    std::lock_guard<std::mutex> lock(mutex_);
    timed_out_ = true;
    stop_.store(true, std::memory_order_relaxed);
    return true;
  }

  // Keeps the first error and stops the run.
  void Fail(absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (active_) StopLocked(std::move(status));
  }

  // Ends the run: the first error, or OK.
  absl::Status Finish() {
    std::lock_guard<std::mutex> lock(mutex_);
    active_ = false;
    if (!first_error_.ok() || !timed_out_) return first_error_;
    return absl::DeadlineExceededError("the run took longer than its time-out");
  }

  // Ends an activation, whose threads have come together, and begins the next one: no lock unless
  // something failed. Cancelled or TimedOut when the run around it is to stop. REQUIRES: there is
  // one.
  absl::Status FinishActivation() {
    if (!stop_.load(std::memory_order_relaxed)) [[likely]] {
      if (!outer_->ShouldStop()) return absl::OkStatus();
      return Expired() ? TimedOut() : absl::CancelledError("the run is to stop");
    }
    stop_.store(false, std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(first_error_, absl::OkStatus());
  }

 private:
  static absl::Status Cancelled() { return absl::CancelledError("the run was cancelled"); }

  // REQUIRES: mutex_ is held.
  void StopLocked(absl::Status status) {
    if (first_error_.ok()) first_error_ = std::move(status);
    stop_.store(true, std::memory_order_relaxed);
  }

  RunControl* const outer_;
  std::optional<Clock::time_point> deadline_;  // constant during a run
  std::atomic<bool> stop_{false};  // a hint to stop early; the error itself is under the mutex
  std::mutex mutex_;               // guards the members below
  bool active_;
  bool cancelled_ = false;  // before the next run begins
  bool timed_out_ = false;
  absl::Status first_error_;
};

}  // namespace interp
