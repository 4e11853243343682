// ReadyQueue: operations that are ready, by priority. Internal to core/engine.
//
// Among equal priorities first in, first out. Pushing threads only stack records into an inbox, by
// compare-and-swap; the worker that takes empties it whole into lists by priority, in order. So
// pushers and workers meet once a batch and not once an operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/engine/record.h"

namespace interp::engine {

// Thread-safety: all methods.
class ReadyQueue {
 public:
  // For threads that push operations.
  void Put(RecordList records);
  // For workers. Appends what an operation has made ready, and takes what is best then.
  Record* Exchange(RecordList ready);
  Record* Take() { return Exchange({}); }
  // Undoes a Take: the record is the first of its priority again.
  void PutBack(Record& record);
  // Cheap enough to spin on. Put is seen by a waiter's last look before it sleeps.
  bool seems_empty() const { return inbox_.load() == nullptr && size_.load() == 0; }
  // For the thread that has just exchanged: whether to wake another one.
  bool has_more() { return size_.fetch_add(0) > 0; }

 private:
  struct Level {
    int32_t priority;
    RecordList records;
  };

  // REQUIRES: lock_ is held.
  void Insert(RecordList records);
  void EmptyInbox();
  bool InboxMayBeBetter();
  Level& LevelOf(int32_t priority);

  alignas(64) std::atomic<Record*> inbox_{nullptr};  // newest first
  alignas(64) std::atomic<bool> urgent_{false};      // the inbox holds a positive priority
  alignas(64) SpinLock lock_;                        // guards what follows
  uint32_t taken_ = 0;                               // since the inbox was emptied
  std::vector<Level> levels_;                        // by descending priority; empty ones stay
  size_t best_ = 0;                                  // no level before it holds a record
  std::atomic<int64_t> size_{0};                     // of levels_
};

}  // namespace interp::engine
