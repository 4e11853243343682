// ErrorLog: the errors of operations that no wait has reported yet. Internal to core/engine.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/engine/operation_error.h"

namespace interp::engine {

// Keeps the first kMaxKept unreported errors and counts those beyond. Errors are destroyed without
// the lock: they may hold exceptions of the user's. Thread-safety: all methods.
class ErrorLog {
 public:
  static constexpr size_t kMaxKept = 1024;

  void Add(const ErrorRef& error) {
    std::vector<ErrorRef> dropped;
    std::lock_guard<std::mutex> lock(mutex_);
    if (errors_.size() >= kMaxKept && --adds_before_sweep_ <= 0) dropped = Sweep();
    if (errors_.size() < kMaxKept) {
      errors_.push_back(error);
    } else {
      ++num_beyond_;
    }
  }

  struct Taken {
    std::vector<ErrorRef> errors;
    int64_t num_beyond = 0;  // more errors, which were not kept
  };
  // Forgets all errors and counts them as reported.
  Taken Take() {
    std::vector<ErrorRef> errors;
    Taken taken;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      errors.swap(errors_);
      taken.num_beyond = std::exchange(num_beyond_, 0);
    }
    for (ErrorRef& error : errors) {
      if (!error->reported.exchange(true)) taken.errors.push_back(std::move(error));
    }
    return taken;
  }

  // Around a fork.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  // Takes out what has been reported by now. A full log is looked through once in a while only.
  std::vector<ErrorRef> Sweep() {
    adds_before_sweep_ = kMaxKept / 4;
    std::vector<ErrorRef> reported;
    std::vector<ErrorRef> kept;
    for (ErrorRef& error : errors_) {
      (error->reported.load(std::memory_order_relaxed) ? reported : kept)
          .push_back(std::move(error));
    }
    errors_.swap(kept);
    return reported;
  }

  std::mutex mutex_;  // guards what follows
  std::vector<ErrorRef> errors_;
  int64_t num_beyond_ = 0;
  int adds_before_sweep_ = 0;
};

}  // namespace interp::engine
