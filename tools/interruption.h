// Ctrl-C, or SIGTERM, while a program runs.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace interp {

// As long as the object lives, the first SIGINT and the first SIGTERM call `stop` on a thread of
// its own, once; the second one of a kind ends the process as if there were no object. A signal
// that the process ignores stays ignored. SIGPIPE does not end the process: who writes to a pipe
// that nobody reads gets the error. One object at a time.
class Interruption {
 public:
  explicit Interruption(std::function<void()> stop);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Whether `stop` was called, or is about to be.
  bool happened() const { return happened_.load(); }

 private:
  void Wait();

  const std::function<void()> stop_;
  std::atomic<bool> happened_{false};
  int pipe_[2] = {-1, -1};    // -1: nothing is watched
  std::vector<int> watched_;  // signals
  bool ignores_pipes_ = false;
  std::thread waiter_;
};

}  // namespace interp
