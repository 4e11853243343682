// OperatorState: what is behind the handles of a recorded operation. Internal to core/engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/record.h"

namespace interp::engine {

// A function with its variables, for many pushes. Pushing threads and workers count references on
// cache lines of their own: pushers use up references that were counted in advance.
struct OperatorState {
  uint32_t engine = 0;  // its id
  const CallableTable* table = nullptr;
  alignas(16) unsigned char callable[kInlineCallable];
  OperationOptions options;
  Route route;
  std::vector<Access> accesses;  // sorted and merged

  std::atomic<int64_t> handles{1};
  // Of `references`, those no push in flight has taken yet. Below zero for a moment.
  alignas(64) std::atomic<int64_t> in_advance{0};
  // One for all handles, one for each push in flight, and those counted in advance.
  alignas(64) std::atomic<int64_t> references{1};

  OperatorState() = default;
  OperatorState(const OperatorState&) = delete;
  OperatorState& operator=(const OperatorState&) = delete;
  ~OperatorState() {
    if (table != nullptr) Destroy(*table, callable);
  }

  // REQUIRES: the caller has a handle.
  void AddPush() {
    if (in_advance.fetch_sub(1, std::memory_order_relaxed) > 0) return;
    constexpr int64_t kBatch = 1024;
    references.fetch_add(kBatch, std::memory_order_relaxed);
    in_advance.fetch_add(kBatch, std::memory_order_relaxed);
  }
  // True: it was the last reference, and the caller deletes this.
  bool DropPush() { return Drop(1); }
  bool DropHandle() {
    // The last handle: it is not pushed any more.
    return handles.fetch_sub(1, std::memory_order_acq_rel) == 1 && Drop(1 + in_advance.load());
  }

 private:
  bool Drop(int64_t count) {
    return references.fetch_sub(count, std::memory_order_acq_rel) == count;
  }
};

}  // namespace interp::engine
