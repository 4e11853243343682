// DistinctCpus: threads that start together begin on CPUs of their own.
//
// Linux may start a thread on the CPU of the one that starts it, when the others are busy at that
// moment, and then leaves both there for up to 20 ms: longer than many a first run takes.
#pragma once

#include <sched.h>

#include <condition_variable>
#include <mutex>

#include "absl/functional/function_ref.h"

namespace interp {

// Moves the calling thread to `cpu`. What it may use afterwards is `allowed` again or, where the
// system does not take that any more, all that the system lets it have: it is never left on one
// CPU. Whether it was moved. `set_affinity`: sched_setaffinity for the calling thread.
bool MoveThisThread(int cpu, const cpu_set_t& allowed,
                    absl::FunctionRef<bool(const cpu_set_t&)> set_affinity);

// Thread-safe. Does nothing where the system reports no CPU.
class DistinctCpus {
 public:
  // Takes the calling thread's CPU.
  DistinctCpus();

  // Takes the calling thread's CPU or, where that is taken, moves the thread to one that is not.
  // Its affinity is observed and stays. Whether it was moved.
  bool Take();

  // Blocks until `count` calls of Take are done. One that shares the caller's CPU runs meanwhile.
  void Await(int count);

 private:
  // The CPU that the calling thread has to move to; -1 where it stays.
  int Choose(int current, const cpu_set_t& allowed);

  std::mutex mutex_;
  std::condition_variable done_changed_;
  cpu_set_t taken_;  // guarded by mutex_
  int done_ = 0;     // guarded by mutex_
};

}  // namespace interp
