#include "core/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"

namespace interp {
namespace {

// Machines with more CPUs than a set can hold make the call fail.
constexpr int kMaxCpus = 1 << 16;

int CpusOfAffinity() {
  for (int count = CPU_SETSIZE; count <= kMaxCpus; count *= 2) {
    cpu_set_t* set = CPU_ALLOC(count);
    const size_t size_bytes = CPU_ALLOC_SIZE(count);
    const bool known = sched_getaffinity(0, size_bytes, set) == 0;
    const int cpus = known ? CPU_COUNT_S(size_bytes, set) : 0;
    CPU_FREE(set);
    if (known) return cpus;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

// The words of a small file of the kernel; none when it cannot be read.
std::vector<std::string> WordsOf(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, /*max_bytes=*/4096);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

// "max" and -1 stand for no limit.
std::optional<double> Ratio(absl::string_view quota_us, absl::string_view period_us) {
  double quota = 0;
  double period = 0;
  const bool limited = absl::SimpleAtod(quota_us, &quota) && absl::SimpleAtod(period_us, &period) &&
                       quota > 0 && period > 0;
  return limited ? std::optional(quota / period) : std::nullopt;
}

std::optional<double> QuotaOfGroup(const std::string& folder) {
  const std::vector<std::string> v2 = WordsOf(folder + "/cpu.max");
  if (v2.size() == 2) return Ratio(v2[0], v2[1]);
  const std::vector<std::string> quota = WordsOf(folder + "/cpu.cfs_quota_us");
  const std::vector<std::string> period = WordsOf(folder + "/cpu.cfs_period_us");
  if (quota.size() != 1 || period.size() != 1) return std::nullopt;
  return Ratio(quota[0], period[0]);
}

// The least quota of a group and those around it. In a container the path may name folders that it
// does not see; the one that is mounted is then its own.
std::optional<double> LeastQuota(const std::string& mount, std::string path) {
  std::optional<double> least;
  while (true) {
    const std::optional<double> quota = QuotaOfGroup(mount + path);
    if (quota.has_value()) least = std::min(least.value_or(*quota), *quota);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

}  // namespace

std::optional<double> CpuQuota(const std::string& root) {
  // One line a hierarchy, "ID:CONTROLLERS:PATH"; version 2 has no controllers.
  const absl::StatusOr<std::string> groups = ReadFile(root + "/proc/self/cgroup", 1 << 20);
  if (!groups.ok()) return std::nullopt;
  std::optional<double> least;
  for (const absl::string_view line : absl::StrSplit(*groups, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    const bool v1 = absl::c_linear_search(controllers, "cpu");
    if (!v1 && !fields[1].empty()) continue;
    for (const char* mount : {"", "/unified", "/cpu", "/cpu,cpuacct"}) {
      const std::optional<double> quota =
          LeastQuota(root + "/sys/fs/cgroup" + mount, fields[2] == "/" ? "" : fields[2]);
      if (quota.has_value()) least = std::min(least.value_or(*quota), *quota);
    }
  }
  return least;
}

int UsableCpus() {
  int cpus = CpusOfAffinity();
  const std::optional<double> quota = CpuQuota();
  if (quota.has_value() && *quota < cpus) cpus = static_cast<int>(std::ceil(*quota));
  return std::max(1, cpus);
}

}  // namespace interp
