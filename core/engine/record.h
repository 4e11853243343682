// What the engine keeps of variables and of operations in flight. Internal to core/engine.
//
// A variable has a queue: the accesses of all operations in flight that name it, in the order they
// were pushed. Those at its front are granted: one writer, or any number of readers. An operation
// is ready when all its accesses are granted.
//
//   access   waiting ──grant──► granted ──operation completes──► gone
//   record   blocked (waiting > 0) ──last grant──► ready ──worker──► running ──► complete ──► free
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/spin_lock.h"
#include "core/engine/operation_error.h"
#include "core/status.h"

namespace interp::engine {

struct Access;
struct CallableTable;
struct Record;
struct VarOrder;

// What an operation does with a variable. The old content matters to all but kWrite.
enum class AccessKind : uint8_t { kRead, kWrite, kUpdate };
inline bool Writes(AccessKind kind) { return kind != AccessKind::kRead; }

// The state behind a variable's handle: one cache line, recycled but never unmapped while the
// engine lives, so that a stale handle is noticed by its generation. Free ones are linked by
// `next_free`.
struct alignas(64) Var {
  SpinLock lock;     // guards all but the atomics, which are written under it
  uint8_t home = 0;  // the pool it came from
  bool named = false;
  std::atomic<bool> spoilt{false};  // `error` is set
  // Odd: live.
  std::atomic<uint32_t> generation{1};
  int32_t granted = 0;  // readers that may run; -1: a writer may
  // In the queue, granted ones included. Lowered after all else a write changes, so a zero is
  // enough to see that.
  std::atomic<uint32_t> pending_writes{0};
  union {
    Access* first = nullptr;  // of the queue: granted ones, then waiting ones
    Var* next_free;
  };
  Access* last = nullptr;
  Access* waiting = nullptr;         // the first that is not granted
  std::atomic<uint64_t> version{0};  // completed writes
  ErrorRef error;  // what made the content useless; read under a grant or the lock
  // Owned: what devices still do with it; see StreamOrder.
  std::atomic<VarOrder*> order{nullptr};

  // REQUIRES: `lock` is held.
  void NextGeneration() {
    generation.store(generation.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  Var() = default;
  Var(const Var&) = delete;
  Var& operator=(const Var&) = delete;
  ~Var();
};
static_assert(sizeof(Var) == 64);

// Whether a variable of that generation may be read and is sound, seen without its lock: false when
// in doubt. Generations only grow, so one that still is right at the end was so all the time.
inline bool SeemsReadable(const Var& var, uint32_t generation) {
  return var.pending_writes.load(std::memory_order_acquire) == 0 &&
         !var.spoilt.load(std::memory_order_acquire) &&
         var.order.load(std::memory_order_acquire) == nullptr &&
         var.generation.load(std::memory_order_acquire) == generation;
}

// One variable of one operation in flight: a link of that variable's queue.
struct Access {
  Access* prev = nullptr;
  Access* next = nullptr;
  Var* var = nullptr;
  uint32_t generation = 0;  // of the handle that was given
  uint16_t index = 0;       // among the accesses of its record
  AccessKind kind = AccessKind::kRead;
  bool granted = false;  // guarded by the variable's lock

  inline Record& record();
};
static_assert(sizeof(Access) == 32);

enum class RecordKind : uint8_t {
  kOperation,
  kWaiter,  // on the stack of a thread that waits; nothing to run
};

inline constexpr size_t kInlineCallable = 48;

// Record::flags
inline constexpr uint8_t kRunsOnErrors = 1;  // even when a variable it reads is spoilt
inline constexpr uint8_t kDeletes = 2;       // its one variable goes when it completes
inline constexpr uint8_t kLarge = 4;         // a slot of kLargeRecord bytes
inline constexpr uint8_t kFromHeap = 8;      // larger than that
inline constexpr uint8_t kOrdered = 16;      // has waited for the uses of devices
inline constexpr uint8_t kBegun = 32;        // has an Issue
inline constexpr uint8_t kIgnoresDevices = 64;

// An operation in flight, followed by its accesses, sorted by address of their variables.
struct Record {
  union {
    Record* next = nullptr;  // of a ready queue or a free list
    uint64_t issue;          // while it runs, if it has a stream; see device_failures.h
  };
  const CallableTable* table = nullptr;
  std::atomic<uint16_t> blocked{0};  // accesses not granted
  uint16_t num_accesses = 0;
  int32_t priority = 0;
  int16_t queue = -1;   // where it runs; -1: on the thread that finds it ready
  int16_t stream = -1;  // of the engine, by index; -1: it uses none
  RecordKind kind = RecordKind::kOperation;
  uint8_t home = 0;  // whose pool it came from
  uint8_t flags = 0;
  // 0: not started. Running: who still needs the callable, which is its function and, if it is
  // asynchronous, its completion.
  std::atomic<uint8_t> holders{0};
  const char* name = nullptr;
  uint64_t number = 0;
  alignas(16) unsigned char callable[kInlineCallable];

  Access* accesses() { return reinterpret_cast<Access*>(this + 1); }
};
static_assert(sizeof(Record) == 96);

Record& Access::record() { return *(reinterpret_cast<Record*>(this - index) - 1); }

// Records linked by `next`, first in first out.
struct RecordList {
  Record* first = nullptr;
  Record* last = nullptr;

  bool empty() const { return first == nullptr; }
  void Append(Record& record) {
    record.next = nullptr;
    (last == nullptr ? first : last->next) = &record;
    last = &record;
  }
  void Append(RecordList list) {
    if (list.empty()) return;
    (last == nullptr ? first : last->next) = list.first;
    last = list.last;
  }
  void Prepend(Record& record) {
    record.next = first;
    first = &record;
    if (last == nullptr) last = &record;
  }
  Record* TakeFirst() {
    Record* record = first;
    if (record != nullptr) first = record->next;
    if (first == nullptr) last = nullptr;
    return record;
  }
};

}  // namespace interp::engine
