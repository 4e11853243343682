#include "core/machine/distinct_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "core/machine/openmp_team.h"

namespace interp::testing::distinct_cpus_test {
namespace {

cpu_set_t Affinity() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  return allowed;
}

// While one lives, its thread stays on one CPU.
class OnOneCpu {
 public:
  explicit OnOneCpu(int cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    EXPECT_EQ(sched_setaffinity(0, sizeof(only), &only), 0);
  }
  ~OnOneCpu() { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  const cpu_set_t before_ = Affinity();
};

TEST(DistinctCpusTest, MovesAThreadWhoseCpuIsTaken) {
  const cpu_set_t allowed = Affinity();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "there is one CPU";
  bool moved = false;
  // The system itself may move the thread first.
  for (int attempt = 0; attempt < 100 && !moved; ++attempt) {
    const OnOneCpu stays(sched_getcpu());
    DistinctCpus cpus;
    std::thread other([&] {  // begins on this CPU
      sched_setaffinity(0, sizeof(allowed), &allowed);
      moved = cpus.Take();
      const cpu_set_t after = Affinity();
      EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
    });
    cpus.Await(1);
    other.join();
  }
  EXPECT_TRUE(moved);
}

// As where the CPUs of a container change between the two calls, or memory is short.
TEST(DistinctCpusTest, LeavesNoThreadOnOneCpu) {
  const cpu_set_t allowed = Affinity();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "there is one CPU";
  for (int num_failures = 0; num_failures < 4; ++num_failures) {
    std::thread thread([&] {
      int calls = 0;
      const auto set_affinity = [&](const cpu_set_t& cpus) {
        const int call = calls++;
        if (call > 0 && call <= num_failures) return false;
        return sched_setaffinity(0, sizeof(cpus), &cpus) == 0;
      };
      EXPECT_TRUE(MoveThisThread(sched_getcpu(), allowed, set_affinity));
      EXPECT_EQ(calls, num_failures + 2);
      const cpu_set_t after = Affinity();
      EXPECT_GE(CPU_COUNT(&after), CPU_COUNT(&allowed));
    });
    thread.join();
  }
}

TEST(DistinctCpusTest, LeavesAThreadThatMayUseNoOther) {
  const OnOneCpu stays(sched_getcpu());
  DistinctCpus cpus;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(cpus.Take());
  cpus.Await(3);
  const cpu_set_t after = Affinity();
  EXPECT_EQ(CPU_COUNT(&after), 1);
}

TEST(DistinctCpusTest, ManyThreadsShareFewCpus) {
  std::atomic<int> calls{0};
  RunOnThreads(200, [&] { ++calls; });
  EXPECT_EQ(calls, 200);
  RunOnThreads(1, [&] { ++calls; });
  EXPECT_EQ(calls, 201);
}

}  // namespace
}  // namespace interp::testing::distinct_cpus_test
