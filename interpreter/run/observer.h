// RunObserver: hooks for profiles, traces and progress.
#pragma once

#include <cstdint>
#include <vector>

#include "interpreter/plan/instruction.h"

namespace interp {

// Instructions go by their number in the whole program (Plan::first_number): those of block 0,
// which come first, have their InstrId. An instruction of a sub-block has the calls of this
// interface once per activation of its block, within those of the instruction that runs the block.
//
// Called from the threads of a run, so implementations must be safe for concurrent calls with
// different `worker`. `worker` is 0 for the thread that called Run, 1 and up for the threads of the
// work queue; under the engine scheduler, where the caller only waits, 0 and up for its threads.
// Times are nanoseconds of the steady clock. Without an observer a run reads no clock. What they
// throw ends the run, as its error; OnFree throws nothing.
//
// Work in a CUDA graph is enqueued at once: the first of its instructions takes the time of all,
// and its outputs have memory from the start.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // Around everything below, on the thread that called Run.
  virtual void OnRunStart(int64_t /*now_ns*/) {}
  virtual void OnRunEnd(int64_t /*now_ns*/) {}

  // Before an instruction runs: it is ready, its outputs have no memory yet.
  virtual void OnStart(int32_t /*instruction*/, int /*worker*/, int64_t /*now_ns*/) {}
  // After it has run, or for work of a device has been launched; before anything is freed.
  // Instructions that a run leaves out after an error have neither call.
  virtual void OnInstruction(int32_t /*instruction*/, int /*worker*/, int64_t /*start_ns*/,
                             int64_t /*end_ns*/) {}

  // The host waits for a device: `event` is an index into the instruction's Plan::events, -1 for
  // all its work. `instruction` is the one that has to wait; -1: the run, before it returns.
  virtual void OnWaitStart(int32_t /*instruction*/, int32_t /*event*/, int /*worker*/,
                           int64_t /*now_ns*/) {}
  virtual void OnWaitEnd(int32_t /*instruction*/, int32_t /*event*/, int /*worker*/,
                         int64_t /*start_ns*/, int64_t /*end_ns*/) {}

  // The run drops a variable's value, `after`, an instruction of the same plan, having been the
  // last to use it. The memory is free once all variables that share it are.
  virtual void OnFree(VarId /*var*/, int32_t /*after*/, int /*worker*/) {}
};

// Passes every call on to several observers, in the order they were added.
class ObserverList final : public RunObserver {
 public:
  // Borrows `observer`; null is left out. Not during a run.
  void Add(RunObserver* observer) {
    if (observer != nullptr) observers_.push_back(observer);
  }
  bool empty() const { return observers_.empty(); }

  void OnRunStart(int64_t now_ns) override {
    for (RunObserver* o : observers_) o->OnRunStart(now_ns);
  }
  void OnRunEnd(int64_t now_ns) override {
    for (RunObserver* o : observers_) o->OnRunEnd(now_ns);
  }
  void OnStart(int32_t instruction, int worker, int64_t now_ns) override {
    for (RunObserver* o : observers_) o->OnStart(instruction, worker, now_ns);
  }
  void OnInstruction(int32_t instruction, int worker, int64_t start_ns, int64_t end_ns) override {
    for (RunObserver* o : observers_) o->OnInstruction(instruction, worker, start_ns, end_ns);
  }
  void OnWaitStart(int32_t instruction, int32_t event, int worker, int64_t now_ns) override {
    for (RunObserver* o : observers_) o->OnWaitStart(instruction, event, worker, now_ns);
  }
  void OnWaitEnd(int32_t instruction, int32_t event, int worker, int64_t start_ns,
                 int64_t end_ns) override {
    for (RunObserver* o : observers_) o->OnWaitEnd(instruction, event, worker, start_ns, end_ns);
  }
  void OnFree(VarId var, int32_t after, int worker) override {
    for (RunObserver* o : observers_) o->OnFree(var, after, worker);
  }

 private:
  std::vector<RunObserver*> observers_;
};

}  // namespace interp
