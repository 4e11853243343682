#include "core/machine/usable_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/testing/temp_folder.h"

namespace interp::usable_memory_test {
namespace {

// The files of /proc and /sys that tell of memory.
class FakeMemory {
 public:
  FakeMemory& Add(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return *this;
  }
  std::optional<uint64_t> Usable() const { return UsableMemory(folder_.path()); }

 private:
  testing::TempFolder folder_;
};

TEST(UsableMemoryTest, OfAMachineIsWhatIsAvailableAndItsSwap) {
  FakeMemory system;
  EXPECT_EQ(system.Usable(), std::nullopt);
  system.Add("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:  30 kB\nSwapFree: 2 kB\n");
  EXPECT_EQ(system.Usable(), 32 * 1024);
  EXPECT_GT(UsableMemory(), 1 << 20);
}

TEST(UsableMemoryTest, OfAContainerIsTheLeastOfAllLevelsButForFiles) {
  FakeMemory system;
  system.Add("proc/meminfo", "MemAvailable: 30000 kB\n")
      .Add("proc/self/cgroup", "0::/app/worker\n")
      .Add("sys/fs/cgroup/app/worker/memory.max", "max\n")
      .Add("sys/fs/cgroup/app/worker/memory.current", "7000\n")
      .Add("sys/fs/cgroup/app/memory.max", "10000\n")
      .Add("sys/fs/cgroup/app/memory.current", "8000\n")
      .Add("sys/fs/cgroup/app/memory.stat", "anon 5000\ninactive_file 1000\nactive_file 500\n");
  EXPECT_EQ(system.Usable(), 3500);
  system.Add("sys/fs/cgroup/app/memory.current", "20000\n");
  EXPECT_EQ(system.Usable(), 0);
}

TEST(UsableMemoryTest, OfVersion1IsThatOfItsController) {
  FakeMemory system;
  system.Add("proc/self/cgroup", "5:memory:/app\n4:cpu:/other\n")
      .Add("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "1000\n")
      .Add("sys/fs/cgroup/memory/app/memory.usage_in_bytes", "900\n")
      .Add("sys/fs/cgroup/memory/app/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
  EXPECT_EQ(system.Usable(), 150);
}

}  // namespace
}  // namespace interp::usable_memory_test
