#include "core/distinct_cpus.h"

namespace interp {
namespace {

// Moves the calling thread; what it may use afterwards is `allowed` again.
bool MoveTo(int cpu, const cpu_set_t& allowed) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  if (sched_setaffinity(0, sizeof(only), &only) != 0) return false;
  return sched_setaffinity(0, sizeof(allowed), &allowed) == 0;
}

}  // namespace

DistinctCpus::DistinctCpus() {
  CPU_ZERO(&taken_);
  const int cpu = sched_getcpu();
  if (cpu >= 0) CPU_SET(cpu, &taken_);
}

bool DistinctCpus::Take() {
  cpu_set_t allowed;
  const int current = sched_getcpu();
  const bool known = current >= 0 && sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  int other = -1;
  if (known) other = Choose(current, allowed);
  const bool moved = other >= 0 && MoveTo(other, allowed);
  const std::lock_guard lock(mutex_);
  ++done_;
  done_changed_.notify_one();
  return moved;
}

int DistinctCpus::Choose(int current, const cpu_set_t& allowed) {
  const std::lock_guard lock(mutex_);
  if (!CPU_ISSET(current, &taken_)) {
    CPU_SET(current, &taken_);
    return -1;
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || CPU_ISSET(cpu, &taken_)) continue;
    CPU_SET(cpu, &taken_);
    return cpu;
  }
  return -1;
}

void DistinctCpus::Await(int count) {
  std::unique_lock lock(mutex_);
  done_changed_.wait(lock, [this, count] { return done_ >= count; });
}

}  // namespace interp
