// Home: pools and counters of the threads that push. Internal to core/engine.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/spin_lock.h"
#include "core/engine/record.h"
#include "core/engine/slot_pool.h"

namespace interp::engine {

// Threads that push share this many pools and counters, by turns of their first use.
inline constexpr int kNumHomes = 16;
// Records come in two sizes, for 5 and 29 accesses, and from the heap beyond.
inline constexpr size_t kSmallRecord = 256;
inline constexpr size_t kLargeRecord = 1024;
inline constexpr size_t AccessesIn(size_t bytes) {
  return (bytes - sizeof(Record)) / sizeof(Access);
}

// Where the threads that map to it take records and variables from. A push holds `lock` from its
// first to its last effect on queues, so who holds all of them knows that no push is under way.
struct alignas(64) Home {
  SpinLock lock;
  int32_t unchecked = 0;            // pushes, by no operation, that need not look at the bound
  std::atomic<uint64_t> pushed{0};  // written under the lock
  SlotPool<Record, &Record::next, kSmallRecord> records;
  SlotPool<Record, &Record::next, kLargeRecord> large_records;
  SlotPool<Var, &Var::next_free, sizeof(Var)> vars;
  // By threads that are no workers.
  alignas(64) std::atomic<uint64_t> completed{0};
  std::atomic<int64_t> completing{0};  // threads that complete an asynchronous operation right now
};

}  // namespace interp::engine
