#include "interpreter/work_queue.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>

namespace interp {
WorkQueue::WorkQueue(const WorkQueueOptions& options) : options_(options) {
  for (int i = 1; i <= options.num_threads; ++i) {
    threads_.emplace_back([this, i] { Work(i, [this] { return stop_.load(); }); });
    const std::string name = (options.name + std::to_string(i)).substr(0, 15);
    pthread_setname_np(threads_.back().native_handle(), name.c_str());
  }
}

WorkQueue::~WorkQueue() {
  stop_.store(true);
  WakeAll();
  for (std::thread& thread : threads_) thread.join();
}

void WorkQueue::Reserve(size_t count) {
  std::lock_guard<SpinLock> guard(lock_);
  heap_.reserve(count);
}

bool WorkQueue::RunsLater(const Entry& a, const Entry& b) {
  return a.task.priority != b.task.priority ? a.task.priority > b.task.priority
                                            : a.arrival > b.arrival;
}

void WorkQueue::Push(const Task& task) {
  {
    std::lock_guard<SpinLock> guard(lock_);
    heap_.push_back({task, arrivals_++});
    std::push_heap(heap_.begin(), heap_.end(), RunsLater);
    size_.store(static_cast<int32_t>(heap_.size()), std::memory_order_relaxed);
  }
  // seq_cst pairs with the sleeper's increment of sleepers_ before its last look: either we see the
  // sleeper, or it sees the new epoch.
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) epoch_.notify_one();
}

void WorkQueue::WakeAll() {
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) epoch_.notify_all();
}

bool WorkQueue::TryPop(Task& task) {
  if (size_.load(std::memory_order_relaxed) == 0) return false;
  std::lock_guard<SpinLock> guard(lock_);
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), RunsLater);
  task = heap_.back().task;
  heap_.pop_back();
  size_.store(static_cast<int32_t>(heap_.size()), std::memory_order_relaxed);
  return true;
}

template <typename Done>
void WorkQueue::Work(int worker, const Done& done) {
  Task task;
  for (int spins = 0; !done();) {
    const uint32_t seen = epoch_.load();
    if (TryPop(task)) {
      task.run(task.context, task.argument, worker);
      spins = 0;
    } else if (++spins < options_.spins_before_sleep) {
      CpuPause();
    } else {
      sleepers_.fetch_add(1);
      // Once more after announcing ourselves; `seen` is from before this look.
      if (!done() && size_.load() == 0) epoch_.wait(seen);
      sleepers_.fetch_sub(1);
      spins = 0;
    }
  }
}

void WorkQueue::HelpUntilZero(const std::atomic<int32_t>& remaining) {
  Work(0, [&remaining] { return remaining.load(std::memory_order_acquire) == 0; });
}

}  // namespace interp
