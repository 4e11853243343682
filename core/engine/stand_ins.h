// StandIns: threads that take the places of workers which wait inside operations. Internal to
// core/engine.
//
// A group of workers has a fixed number of places. A worker that waits inside an operation lends
// its place: while it waits, a stand-in runs the group's operations. So every group always has a
// thread that does not wait, whatever waits for whatever. The worker goes on as soon as its wait
// ends; the stand-in leaves the group after the operation it is running.
//
//   parked ──Send──► in a group ──no work, or no place lent──► parked
//
// A thread is reserved before a place is lent, so Send always finds one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/engine/record.h"
#include "core/engine/worker_group.h"
#include "core/status.h"

namespace interp::engine {

// Thread-safety: all methods.
class StandIns {
 public:
  // `first_number`: of the stand-ins as workers of the engine.
  StandIns(EngineCore& core, int most, int first_number);
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

  // A worker of the group is about to wait. ResourceExhausted when no thread can be reserved.
  absl::Status Lend(WorkerGroup& group);
  // The wait is over.
  void TakeBack(WorkerGroup& group);
  // For threads that see operations in the group's queue and no idle worker.
  void SendIfLacking(WorkerGroup& group) {
    if (Lacks(group)) Send(group);
  }
  static bool IsSurplus(const WorkerGroup& group) {
    return group.stand_ins.load() > group.waiting.load();
  }
  // For a stand-in between two operations: whether it has left its group, because there is no work
  // or no place. A stopped group has no work.
  bool Leaves(Worker& worker, bool has_work);
  // Runs operations of no queue on a thread that waits for nothing; false when there is none.
  bool RunBacklog(const RecordList& backlog);

  // Ends the threads. REQUIRES: nothing is in flight. They start again on demand.
  void End();

  // Operations that stand-ins have completed as workers.
  uint64_t completed() const;

 private:
  struct StandIn {
    Worker worker;
    std::thread thread;
    std::condition_variable wake;
    WorkerGroup* group = nullptr;  // where it goes; null: it runs `backlog`
    RecordList backlog;
    bool sent = false;
  };

  static bool Lacks(const WorkerGroup& group) {
    return group.waiting.load() > group.stand_ins.load();
  }
  void Send(WorkerGroup& group);
  // REQUIRES of the following: mutex_ is held.
  bool Reserve();
  bool StartThread();
  StandIn& TakeParked();
  void Loop(StandIn& self);

  EngineCore& core_;
  const int most_;
  const int first_number_;
  mutable std::mutex
      mutex_;  // guards what follows; `waiting`, `stand_ins` of groups change under it
  std::vector<std::unique_ptr<StandIn>> all_;  // kept when their threads end: they hold counts
  std::atomic<int> num_made_{0};               // of all_, whose elements never move
  int num_threads_ = 0;                        // of the first of all_
  // Over all groups the larger of `waiting` and `stand_ins`, and backlogs being run. At most
  // num_threads_.
  int reserved_ = 0;
  std::vector<StandIn*> parked_;
  bool ending_ = false;
};

// While it lives, this thread's place is lent if it is a worker's. Wherever a thread of any engine
// blocks for an engine.
class LentPlace {
 public:
  LentPlace();
  ~LentPlace();
  LentPlace(const LentPlace&) = delete;
  LentPlace& operator=(const LentPlace&) = delete;
  // ResourceExhausted when the place could not be lent.
  const absl::Status& status() const { return status_; }

 private:
  Worker* const worker_;
  absl::Status status_;
};

}  // namespace interp::engine
