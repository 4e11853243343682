// How much memory this process may still take before the system ends it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace interp {

// What the machine has free, caches that it would drop and swap included, and no more than the
// control groups of this process (containers) leave; nullopt where the system does not tell. Asks
// it in each call. `root` stands before /proc and /sys, for tests.
std::optional<uint64_t> UsableMemory(const std::string& root = "");

}  // namespace interp
