// WorkQueue: a pool of threads that run small fixed-size tasks by priority.
//
// One heap of ready tasks, ordered by priority and then by arrival, under a short spin lock: tasks
// are few (what a scheduler keeps on the thread that made it ready never gets here), so stealing
// between per-thread queues would buy nothing for its price in order. An idle worker spins for a
// bounded time, then sleeps. No wake-up is lost: a sleeper waits on an epoch that it read before it
// last looked at the heap, and every push raises the epoch after it has put the task there.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "core/spin_lock.h"

namespace interp {

struct Task {
  void (*run)(void* context, int32_t argument, int worker) = nullptr;
  void* context = nullptr;
  int32_t argument = 0;
  int32_t priority = 0;  // lower runs first
};

struct WorkQueueOptions {
  std::string name = "host";  // of the threads, with their number behind
  // Threads besides the callers of HelpUntilZero. 0 is fine: then only callers run tasks.
  int num_threads = 0;
  // Looks at the heap before an idle worker sleeps. About 20 us: longer than the gaps between
  // instructions of one run, far shorter than the gap between runs.
  int spins_before_sleep = 2000;
};

// Thread-safety: all methods from any thread; destruction joins the threads, with no task waiting
// and nobody inside HelpUntilZero.
class WorkQueue {
 public:
  explicit WorkQueue(const WorkQueueOptions& options);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Makes room for `count` waiting tasks, so that pushing up to that many allocates nothing.
  void Reserve(size_t count);
  // Adds a task and wakes a sleeper if there is one.
  void Push(const Task& task);
  // Runs tasks on the calling thread, as worker 0, until `remaining` is zero. Whoever takes it to
  // zero must call WakeAll afterwards.
  void HelpUntilZero(const std::atomic<int32_t>& remaining);
  void WakeAll();

  int num_threads() const { return static_cast<int>(threads_.size()); }

 private:
  struct Entry {
    Task task;
    uint64_t arrival;
  };
  static bool RunsLater(const Entry& a, const Entry& b);

  bool TryPop(Task& task);
  template <typename Done>
  void Work(int worker, const Done& done);

  const WorkQueueOptions options_;
  SpinLock lock_;  // guards heap_ and arrivals_
  std::vector<Entry> heap_;
  uint64_t arrivals_ = 0;
  std::atomic<int32_t> size_{0};    // of heap_, read without the lock while spinning
  std::atomic<uint32_t> epoch_{0};  // raised by every Push and WakeAll, after its effect
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace interp
