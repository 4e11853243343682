// WorkerGroup: a queue of ready operations and the threads that run them. Internal to core/engine.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine/event_count.h"
#include "core/engine/policy.h"
#include "core/engine/ready_queue.h"

namespace interp::engine {

class EngineCore;
struct WorkerGroup;

// A thread of a group.
struct alignas(64) Worker {
  EngineCore* core = nullptr;
  WorkerGroup* group = nullptr;
  int index = 0;                       // in its group
  int number = 0;                      // in the engine
  bool stands_in = false;              // see stand_ins.h
  std::atomic<uint64_t> completed{0};  // written by this thread
  // Records of one home that it has not returned yet.
  RecordList returning;
  int num_returning = 0;
};

// The threads of one queue; started when it gets its first operation.
struct WorkerGroup {
  QueueSpec spec;
  int16_t number = 0;
  ReadyQueue ready;
  EventCount idle;  // where its threads sleep
  // Threads that have lent their places, and stand-ins that run its operations; see stand_ins.h.
  std::atomic<int32_t> waiting{0};
  std::atomic<int32_t> stand_ins{0};
  std::atomic<int32_t> spinning{0};
  std::atomic<bool> started{false};
  std::atomic<bool> stop{false};                 // nothing is run that is taken after it was set
  std::vector<std::unique_ptr<Worker>> workers;  // kept when their threads end: they hold counts
  std::vector<std::thread> threads;              // guarded by EngineCore::lifecycle_
};

}  // namespace interp::engine
