// How many CPUs this process may use, which can be far fewer than the machine has.
#pragma once

#include <optional>
#include <string>

namespace interp {

// At least 1: the CPUs that the calling thread may run on (sched_setaffinity, taskset), and no more
// than the processor time that its control groups grant (containers), rounded up. Asks the system
// in each call.
int UsableCpus();

// Processor time per time that the control groups of this process grant, versions 1 and 2, all
// levels; nullopt without a limit. `root` stands before /proc and /sys, for tests.
std::optional<double> CpuQuota(const std::string& root = "");

}  // namespace interp
