// Forking a process with engines in it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "tests/testing/devices.h"
#include "tests/testing/engines.h"

// ThreadSanitizer ends a child that starts threads.
#if !defined(__SANITIZE_THREAD__)

namespace interp::engine {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::MakeEngine;

// What a child says: 0 when `holds` does there.
template <typename Holds>
int ExitOfChild(const Holds& holds) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(holds() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

class EngineFork : public ::testing::TestWithParam<PolicyKind> {};
INSTANTIATE_TEST_SUITE_P(Engine, EngineFork,
                         ::testing::Values(PolicyKind::kNaive, PolicyKind::kPooled,
                                           PolicyKind::kPerDevice),
                         testing::NameOfPolicy);

TEST_P(EngineFork, ParentAndChildGoOn) {
  auto engine = MakeEngine({.policy = GetParam(), .workers = 3});
  const Variable v = engine->NewVariable();
  std::atomic<int> runs{0};
  const auto push = [&](int count) {
    bool ok = true;
    for (int i = 0; i < count; ++i) ok &= engine->Push([&] { ++runs; }, {.writes = {v}}).ok();
    return ok;
  };
  EXPECT_TRUE(push(100));
  EXPECT_THAT(engine->Push([&] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); },
                           {.reads = {v}}),
              IsOk());
  for (int round = 0; round < 3; ++round) {
    const int before = 100 * (round + 1);
    EXPECT_EQ(ExitOfChild([&] {
                return runs == before && push(50) && engine->WaitForVar(v).ok() &&
                       engine->WaitForAll().ok() && runs == before + 50;
              }),
              0);
    EXPECT_EQ(runs, before);
    EXPECT_TRUE(push(100));
    EXPECT_THAT(engine->WaitForAll(), IsOk());
  }
}

TEST_P(EngineFork, APendingErrorIsKeptInBoth) {
  auto engine = MakeEngine({.policy = GetParam()});
  const Variable v = engine->NewVariable();
  ASSERT_THAT(engine->Push([] { return absl::InternalError("pending"); }, {.writes = {v}}), IsOk());
  EXPECT_EQ(ExitOfChild([&] { return !engine->WaitForAll().ok() && !engine->WaitForVar(v).ok(); }),
            0);
  EXPECT_THAT(engine->WaitForAll(), FailsWith(absl::StatusCode::kInternal, "pending"));
}

// Each of two operations waits for the other, which one worker could not do; three would run three
// at once.
TEST(EngineForkTest, AChildHasTheWorkersThatItIsGiven) {
  for (const PolicyKind policy : {PolicyKind::kPooled, PolicyKind::kPerDevice}) {
    auto engine = MakeEngine({.policy = policy, .workers = 3, .workers_in_child = 2});
    EXPECT_EQ(ExitOfChild([&] {
                std::latch both(2);
                std::atomic<int> running{0};
                std::atomic<int> most{0};
                bool pushed = true;
                for (int i = 0; i < 2; ++i) {
                  pushed &= engine->Push([&] { both.arrive_and_wait(); }, {}).ok();
                }
                for (int i = 0; i < 9; ++i) {
                  const auto stay = [&] {
                    const int now = ++running;
                    if (now > 2) most = now;
                    std::this_thread::sleep_for(std::chrono::milliseconds(2));
                    --running;
                  };
                  pushed &= engine->Push(stay, {}).ok();
                }
                return pushed && engine->WaitForAll().ok() && most == 0;
              }),
              0);
  }
}

// AddressSanitizer's allocator (GCC 12) takes no part in forks: what another thread has locked of
// it stays locked in the child.
#if !defined(__SANITIZE_ADDRESS__)

TEST_P(EngineFork, DevicesStayWithTheParent) {
  const auto device = testing::MakeDevice({.max_copy_delay_ns = 1'000'000});
  auto engine = MakeEngine({.policy = GetParam(), .devices = {device}});
  const Variable v = engine->NewVariable();
  float* const memory = testing::Floats(*device, 16);
  const auto push = [&] {
    return engine->Push(
        [&](const RunContext& ctx) {
          testing::Put(*ctx.stream, memory, std::vector<float>(16, 1), ctx.work);
        },
        {.writes = {v}}, {.place = device->place()});
  };
  EXPECT_THAT(push(), IsOk());
  EXPECT_EQ(ExitOfChild([&] {
              bool ran = false;
              const bool holds = push().code() == absl::StatusCode::kFailedPrecondition &&
                                 engine->WaitForWrite(v).ok() &&
                                 engine->Push([&] { ran = true; }, {.writes = {v}}).ok() &&
                                 engine->WaitForAll().ok() && ran;
              engine.reset();
              return holds;
            }),
            0);
  EXPECT_THAT(push(), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
}

TEST_P(EngineFork, WhileOtherThreadsPushAndWait) {
  auto engine = MakeEngine({.policy = GetParam(), .workers = 2});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const Variable v = engine->NewVariable("busy");
      while (!stop) {
        for (int i = 0; i < 20; ++i) EXPECT_THAT(engine->Push([] {}, {.writes = {v}}), IsOk());
        EXPECT_THAT(engine->WaitForVar(v), IsOk());
        EXPECT_THAT(engine->DeleteVariable(engine->NewVariable()), IsOk());
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ExitOfChild([&] {
                const Variable v = engine->NewVariable();
                bool ran = false;
                return engine->Push([&] { ran = true; }, {.writes = {v}}).ok() &&
                       engine->WaitForVar(v).ok() && ran;
              }),
              0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
}

// The operations that a fork waits for need the other engine, or the list of all.
TEST_P(EngineFork, WhileOperationsUseOtherEngines) {
  auto first = MakeEngine({.policy = GetParam()});
  auto second = MakeEngine({.policy = GetParam()});
  const Variable v = first->NewVariable();
  constexpr int kPushes = 20'000;
  constexpr int kEngines = 50;
  const auto use = [&] {
    absl::Status used;
    for (int i = 0; i < kPushes; ++i) used.Update(first->Push([] {}, {.writes = {v}}));
    used.Update(first->WaitForVar(v));
    for (int i = 0; i < kEngines; ++i) {
      used.Update(MakeEngine({.policy = GetParam()})->Push([] {}, {}));
    }
    return used;
  };
  for (int round = 0; round < 3; ++round) {
    std::latch begun(1);
    ASSERT_THAT(second->Push(
                    [&] {
                      begun.count_down();
                      return use();
                    },
                    {}),
                IsOk());
    begun.wait();
    EXPECT_EQ(ExitOfChild([&] { return use().ok() && first->WaitForAll().ok(); }), 0);
    EXPECT_THAT(second->WaitForAll(), IsOk());
  }
}

#endif

}  // namespace
}  // namespace interp::engine

#endif
