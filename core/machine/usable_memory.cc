#include "core/machine/usable_memory.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/machine/control_groups.h"

namespace interp {
namespace {

// The number behind a word of a file of the kernel; 0 without it.
uint64_t NumberBehind(const std::vector<std::string>& words, absl::string_view word) {
  const auto it = std::find(words.begin(), words.end(), word);
  uint64_t number = 0;
  const bool there = it != words.end() && it + 1 != words.end();
  return there && absl::SimpleAtoi(*(it + 1), &number) ? number : 0;
}

// A file that holds one number; nullopt for "max" and others.
std::optional<uint64_t> NumberIn(const std::string& path) {
  const std::vector<std::string> words = WordsOfFile(path);
  uint64_t number = 0;
  if (words.size() != 1 || !absl::SimpleAtoi(words[0], &number)) return std::nullopt;
  return number;
}

std::optional<uint64_t> LeftInGroup(const std::string& folder) {
  std::optional<uint64_t> limit = NumberIn(folder + "/memory.max");
  std::optional<uint64_t> used = NumberIn(folder + "/memory.current");
  std::string prefix;
  if (!limit.has_value()) {
    limit = NumberIn(folder + "/memory.limit_in_bytes");
    used = NumberIn(folder + "/memory.usage_in_bytes");
    prefix = "total_";
  }
  if (!limit.has_value() || !used.has_value()) return std::nullopt;
  // Pages of files, and what the kernel keeps of their names, go before a process does.
  const std::vector<std::string> stat = WordsOfFile(folder + "/memory.stat");
  const uint64_t files = NumberBehind(stat, prefix + "inactive_file") +
                         NumberBehind(stat, prefix + "active_file") +
                         NumberBehind(stat, "slab_reclaimable");
  const uint64_t kept = *used - std::min(files, *used);
  return *limit - std::min(kept, *limit);
}

}  // namespace

std::optional<uint64_t> UsableMemory(const std::string& root) {
  constexpr uint64_t kKib = 1024;
  const std::vector<std::string> machine = WordsOfFile(root + "/proc/meminfo");
  const uint64_t available = NumberBehind(machine, "MemAvailable:");
  std::optional<uint64_t> usable;
  if (available > 0) usable = kKib * (available + NumberBehind(machine, "SwapFree:"));
  for (const std::string& folder : ControlGroupFolders(root, "memory")) {
    const std::optional<uint64_t> left = LeftInGroup(folder);
    if (left.has_value()) usable = std::min(usable.value_or(*left), *left);
  }
  return usable;
}

}  // namespace interp
