#include "core/machine/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/machine/control_groups.h"

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

// "max" and -1 stand for no limit.
std::optional<double> Ratio(absl::string_view quota_us, absl::string_view period_us) {
  double quota = 0;
  double period = 0;
  const bool limited = absl::SimpleAtod(quota_us, &quota) && absl::SimpleAtod(period_us, &period) &&
                       quota > 0 && period > 0;
  return limited ? std::optional(quota / period) : std::nullopt;
}

std::optional<double> QuotaOfGroup(const std::string& folder) {
  const std::vector<std::string> v2 = WordsOfFile(folder + "/cpu.max");
  if (v2.size() == 2) return Ratio(v2[0], v2[1]);
  const std::vector<std::string> quota = WordsOfFile(folder + "/cpu.cfs_quota_us");
  const std::vector<std::string> period = WordsOfFile(folder + "/cpu.cfs_period_us");
  if (quota.size() != 1 || period.size() != 1) return std::nullopt;
  return Ratio(quota[0], period[0]);
}

}  // namespace

std::optional<double> CpuQuota(const std::string& root) {
  std::optional<double> least;
  for (const std::string& folder : ControlGroupFolders(root, "cpu")) {
    const std::optional<double> quota = QuotaOfGroup(folder);
    if (quota.has_value()) least = std::min(least.value_or(*quota), *quota);
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
