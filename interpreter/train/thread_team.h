// ThreadTeam: threads that do the same on different parts, again and again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/status.h"

namespace interp {

// Part i is always done by the same thread: what kernels keep for a thread, such as OpenMP's
// threads, is made once.
// Thread-safety: Run from one thread at a time.
class ThreadTeam {
 public:
  // ResourceExhausted when the system has no more threads.
  static absl::StatusOr<std::unique_ptr<ThreadTeam>> Create(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  // Calls work(i) on thread i, for all i, and returns when all have. `work` throws nothing.
  void Run(const std::function<void(int part)>& work);

 private:
  ThreadTeam() = default;
  void Work(int part);

  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable begin_;
  std::condition_variable end_;
  const std::function<void(int)>* work_ = nullptr;
  uint64_t round_ = 0;  // of Run
  int busy_ = 0;
  bool stop_ = false;
};

}  // namespace interp
