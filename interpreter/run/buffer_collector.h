// BufferCollector: gives memory back later than its last use, in batches.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/buffer.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/device_set.h"
#include "interpreter/run/gc_options.h"

namespace interp {

// Collects buffers up to the threshold and, with kEvent, lets a thread wait for the devices before
// it drops them. One for all frames of a core.
//
// Thread-safety: all methods from any thread.
class BufferCollector {
 public:
  // Null when memory is to be dropped at once, which needs no collector. Borrows `devices`, which
  // are null for plans without; `streams` are those of the plans.
  static std::unique_ptr<BufferCollector> Create(const std::vector<PlanStream>& streams,
                                                 DeviceSet* devices, const GcOptions& options);
  // Flushes, and waits until everything has been given back.
  ~BufferCollector();

  void Add(BufferRef buffer);
  // Gives back what has been collected, whatever the threshold.
  void Flush();

 private:
  // Buffers, and what must have happened on the devices before they are idle.
  struct Batch {
    std::vector<BufferRef> buffers;
    std::vector<std::unique_ptr<DeviceEvent>> events = {};
  };

  BufferCollector(const std::vector<PlanStream>& streams, DeviceSet* devices,
                  const GcOptions& options);
  std::vector<BufferRef> TakeCollected();  // REQUIRES: mutex_ is held
  void GiveBack(std::vector<BufferRef> buffers);
  // An event after the work of the stream so far; null when none of it is left.
  std::unique_ptr<DeviceEvent> EventAfter(int32_t stream);
  void Work();

  DeviceSet* const devices_;
  const size_t threshold_bytes_;
  std::vector<int32_t> streams_;  // of devices, by index into Plan::streams
  std::vector<Place> places_;     // by index into Plan::streams
  std::mutex mutex_;              // guards the members below but thread_
  std::condition_variable wake_;
  std::vector<BufferRef> collected_;
  size_t collected_bytes_ = 0;
  std::vector<Batch> batches_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace interp
