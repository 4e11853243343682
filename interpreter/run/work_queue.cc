#include "interpreter/run/work_queue.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>

namespace interp {

WorkQueue::WorkQueue(const WorkQueueOptions& options) : options_(options) {
  try {
    for (int i = 1; i <= options.num_threads; ++i) {
      threads_.emplace_back([this, i] { Work(i, nullptr, [this] { return stop_.load(); }); });
      const std::string name = (options.name + std::to_string(i)).substr(0, 15);
      pthread_setname_np(threads_.back().native_handle(), name.c_str());
    }
  } catch (...) {
    EndThreads();
    throw;
  }
}

WorkQueue::~WorkQueue() { EndThreads(); }

void WorkQueue::EndThreads() {
  stop_.store(true);
  WakeAll();
  for (std::thread& thread : threads_) thread.join();
}

bool TaskLane::RunsLater(const Entry& a, const Entry& b) {
  return a.task.priority != b.task.priority ? a.task.priority > b.task.priority
                                            : a.arrival > b.arrival;
}

void WorkQueue::Push(TaskLane& lane, const Task& task) {
  {
    std::lock_guard<SpinLock> guard(lock_);
    if (lane.heap_.empty()) lanes_.push_back(&lane);
    lane.heap_.push_back({task, arrivals_++});
    std::push_heap(lane.heap_.begin(), lane.heap_.end(), TaskLane::RunsLater);
    lane.size_.store(static_cast<int32_t>(lane.heap_.size()), std::memory_order_relaxed);
    size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // seq_cst pairs with the sleeper's increment of sleepers_ before its last look: either we see the
  // sleeper, or it sees the new epoch.
  epoch_.fetch_add(1);
  if (sleepers_.load() == 0) return;
  // A single wake-up could go to a sleeper that wants none of this lane.
  if (choosy_sleepers_.load() > 0) {
    epoch_.notify_all();
  } else {
    epoch_.notify_one();
  }
}

void WorkQueue::WakeAll() {
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) epoch_.notify_all();
}

// The lane whose first task runs first. REQUIRES: lock_ is held and there is one.
TaskLane* WorkQueue::BestLane() const {
  return *std::min_element(lanes_.begin(), lanes_.end(), [](const TaskLane* a, const TaskLane* b) {
    return TaskLane::RunsLater(b->heap_.front(), a->heap_.front());
  });
}

bool WorkQueue::TryPop(TaskLane* only, Task& task) {
  if ((only == nullptr ? size_ : only->size_).load(std::memory_order_relaxed) == 0) return false;
  std::lock_guard<SpinLock> guard(lock_);
  if (only == nullptr ? lanes_.empty() : only->heap_.empty()) return false;
  TaskLane& lane = only == nullptr ? *BestLane() : *only;
  std::pop_heap(lane.heap_.begin(), lane.heap_.end(), TaskLane::RunsLater);
  task = lane.heap_.back().task;
  lane.heap_.pop_back();
  lane.size_.store(static_cast<int32_t>(lane.heap_.size()), std::memory_order_relaxed);
  size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  if (lane.heap_.empty()) std::erase(lanes_, &lane);
  return true;
}

template <typename Done>
void WorkQueue::Work(int worker, TaskLane* only, const Done& done) {
  const std::atomic<int32_t>& size = only == nullptr ? size_ : only->size_;
  Task task;
  for (int spins = 0; !done();) {
    const uint32_t seen = epoch_.load();
    if (TryPop(only, task)) {
      task.run(task.context, task.argument, worker);
      spins = 0;
    } else if (++spins < options_.spins_before_sleep) {
      CpuPause();
    } else {
      if (only != nullptr) choosy_sleepers_.fetch_add(1);
      sleepers_.fetch_add(1);
      // Once more after announcing ourselves; `seen` is from before this look.
      if (!done() && size.load() == 0) epoch_.wait(seen);
      sleepers_.fetch_sub(1);
      if (only != nullptr) choosy_sleepers_.fetch_sub(1);
      spins = 0;
    }
  }
}

void WorkQueue::HelpUntilZero(const std::atomic<int32_t>& remaining) {
  Work(0, nullptr, [&remaining] { return remaining.load(std::memory_order_acquire) == 0; });
}

void WorkQueue::HelpUntilZero(TaskLane& lane, const std::atomic<int32_t>& remaining, int worker) {
  Work(worker, &lane, [&remaining] { return remaining.load(std::memory_order_acquire) == 0; });
}

}  // namespace interp
