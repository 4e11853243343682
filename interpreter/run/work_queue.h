// WorkQueue: a pool of threads that run small fixed-size tasks by priority.
//
// Tasks wait in lanes, one per activation that runs, so a handful. A lane is a heap, ordered by
// priority and then by arrival; all are under one short spin lock: tasks are few (what a scheduler
// keeps on the thread that made it ready never gets here), so stealing between per-thread queues
// would buy nothing for its price in order. An idle worker spins for a bounded time, then sleeps.
// No wake-up is lost: a sleeper waits on an epoch that it read before it last looked at the heaps,
// and every push raises the epoch after it has put the task there.
//
// A task may wait for tasks that it pushed to a lane of its own (a loop's body). It runs only those
// meanwhile: each of them is in the lane or on a thread that runs it, so the wait ends, with one
// thread, too; and the stack grows by the nesting of blocks alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "core/base/spin_lock.h"

namespace interp {

struct Task {
  void (*run)(void* context, int32_t argument, int worker) = nullptr;
  void* context = nullptr;
  int32_t argument = 0;
  int32_t priority = 0;  // lower runs first
};

// The tasks of one activation that wait for a thread. Used through one WorkQueue, which it must not
// outlive tasks of.
class TaskLane {
 public:
  // Makes room for `count` waiting tasks, so that pushing up to that many allocates nothing.
  void Reserve(size_t count) { heap_.reserve(count); }

 private:
  friend class WorkQueue;
  struct Entry {
    Task task;
    uint64_t arrival;
  };
  static bool RunsLater(const Entry& a, const Entry& b);

  std::vector<Entry> heap_;       // guarded by the queue's lock
  std::atomic<int32_t> size_{0};  // of heap_, read without the lock while spinning
};

struct WorkQueueOptions {
  std::string name = "host";  // of the threads, with their number behind
  // Threads besides the callers of HelpUntilZero. 0 is fine: then only callers run tasks.
  int num_threads = 0;
  // Looks at the heaps before an idle worker sleeps. About 20 us: longer than the gaps between
  // instructions of one run, far shorter than the gap between runs.
  int spins_before_sleep = 2000;
};

// Thread-safety: all methods from any thread; destruction joins the threads, with no task waiting
// and nobody inside HelpUntilZero.
class WorkQueue {
 public:
  // Throws std::system_error where the system gives fewer threads.
  explicit WorkQueue(const WorkQueueOptions& options);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Adds a task and wakes a sleeper if there is one.
  void Push(TaskLane& lane, const Task& task);
  // Runs tasks of all lanes on the calling thread, as worker 0, until `remaining` is zero. Whoever
  // takes it to zero must call WakeAll afterwards.
  void HelpUntilZero(const std::atomic<int32_t>& remaining);
  // The same for a thread that runs a task itself, as `worker`: runs tasks of `lane` alone.
  void HelpUntilZero(TaskLane& lane, const std::atomic<int32_t>& remaining, int worker);
  void WakeAll();

  int num_threads() const { return static_cast<int>(threads_.size()); }

 private:
  void EndThreads();
  bool TryPop(TaskLane* only, Task& task);
  TaskLane* BestLane() const;
  template <typename Done>
  void Work(int worker, TaskLane* only, const Done& done);

  const WorkQueueOptions options_;
  SpinLock lock_;                 // guards lanes_, their heaps and arrivals_
  std::vector<TaskLane*> lanes_;  // that have tasks
  uint64_t arrivals_ = 0;
  std::atomic<int32_t> size_{0};    // of all heaps, read without the lock while spinning
  std::atomic<uint32_t> epoch_{0};  // raised by every Push and WakeAll, after its effect
  std::atomic<int32_t> sleepers_{0};
  std::atomic<int32_t> choosy_sleepers_{0};  // those of them that wait for one lane
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace interp
