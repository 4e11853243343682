// Work: what is said of something enqueued on a device, and where its failure is kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/status.h"

namespace interp {

// The first failure of a piece of work, told apart by the tag the work was enqueued with.
struct WorkError {
  int32_t tag = -1;
  absl::Status status;
};

// Where work in flight reports failures; work enqueued later with the same sink is skipped once one
// is there (events are still recorded and waits still end). Thread-safety: all methods.
class WorkErrors {
 public:
  // Keeps the first.
  void Report(int32_t tag, absl::Status status);
  // One load.
  bool any() const { return any_.load(std::memory_order_acquire); }
  // The error, if there is one.
  std::optional<WorkError> Get() const;
  // The error, which is forgotten; work goes on afterwards. REQUIRES: nothing in flight.
  std::optional<WorkError> Take();

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;  // guards first_
  std::optional<WorkError> first_;
};

// What the enqueuer says of a piece of work. `bytes` and `flops` are what a kernel touches and
// computes (0: unknown); copies know their bytes themselves.
struct Work {
  int32_t tag = -1;              // the instruction, for errors and traces
  WorkErrors* errors = nullptr;  // borrowed until the work is done; null: failures are ignored
  int64_t bytes = 0;
  int64_t flops = 0;
};

}  // namespace interp
