#include "core/machine/distinct_cpus.h"

#include <cstring>
#include <thread>

namespace interp {

bool MoveThisThread(int cpu, const cpu_set_t& allowed,
                    absl::FunctionRef<bool(const cpu_set_t&)> set_affinity) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  if (!set_affinity(only)) return false;
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof(all));
  // The system leaves out what the process may not use. It may have no memory for a moment.
  while (!set_affinity(allowed) && !set_affinity(all)) std::this_thread::yield();
  return true;
}

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
  const bool moved = other >= 0 && MoveThisThread(other, allowed, [](const cpu_set_t& cpus) {
                       return sched_setaffinity(0, sizeof(cpus), &cpus) == 0;
                     });
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
