#include "core/machine/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using testing::TempFolder;

// The files of /proc and /sys that tell of control groups.
class FakeSystem {
 public:
  FakeSystem& Add(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return *this;
  }
  std::optional<double> Quota() const { return CpuQuota(folder_.path()); }

 private:
  TempFolder folder_;
};

TEST(UsableCpusTest, AffinityCounts) {
  int usable = 0;
  // Affinity belongs to a thread.
  std::thread bound([&] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    usable = UsableCpus();
  });
  bound.join();
  EXPECT_EQ(usable, 1);
  EXPECT_GE(UsableCpus(), 1);
}

TEST(CpuQuotaTest, OfVersion2IsTheLeastOfAllLevels) {
  FakeSystem system;
  system.Add("proc/self/cgroup", "0::/app/worker\n")
      .Add("sys/fs/cgroup/app/worker/cpu.max", "400000 100000\n")
      .Add("sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(system.Quota(), 1.5);
  system.Add("sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(system.Quota(), 4);
}

TEST(CpuQuotaTest, OfAContainerIsWhereItsGroupIsMounted) {
  FakeSystem system;
  system.Add("proc/self/cgroup", "0::/docker/0123\n")
      .Add("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(system.Quota(), 0.5);
}

TEST(CpuQuotaTest, OfVersion1IsThatOfItsController) {
  FakeSystem system;
  system.Add("proc/self/cgroup", "5:memory:/other\n4:cpu,cpuacct:/app\n")
      .Add("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "200000\n")
      .Add("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(system.Quota(), 2);
  system.Add("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(system.Quota(), std::nullopt);
}

TEST(CpuQuotaTest, NoneWithoutControlGroups) {
  FakeSystem system;
  EXPECT_EQ(system.Quota(), std::nullopt);
  system.Add("proc/self/cgroup", "nonsense\n0:\n::\n").Add("sys/fs/cgroup/cpu.max", "");
  EXPECT_EQ(system.Quota(), std::nullopt);
}

}  // namespace
}  // namespace interp
