#include "interpreter/run/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace interp {
namespace {

using ::testing::ElementsAre;

// Counts down as its tasks run, and keeps what they were.
struct Log {
  explicit Log(WorkQueue& queue, int32_t count) : queue(queue), remaining(count) {}

  static void Run(void* context, int32_t argument, int worker) {
    static_cast<Log*>(context)->Add(argument, worker);
  }
  void Add(int32_t argument, int worker) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      arguments.push_back(argument);
      workers.push_back(worker);
    }
    if (remaining.fetch_sub(1) == 1) queue.WakeAll();
  }
  Task MakeTask(int32_t argument, int32_t priority = 0) {
    return {.run = &Log::Run, .context = this, .argument = argument, .priority = priority};
  }

  WorkQueue& queue;
  TaskLane lane;
  std::atomic<int32_t> remaining;
  std::mutex mutex;
  std::vector<int32_t> arguments;
  std::vector<int> workers;
};

TEST(WorkQueueTest, WithoutThreadsTheCallerRunsAll) {
  WorkQueue queue({.num_threads = 0});
  Log log(queue, 3);
  for (int32_t i = 0; i < 3; ++i) queue.Push(log.lane, log.MakeTask(i));
  queue.HelpUntilZero(log.remaining);
  EXPECT_THAT(log.arguments, ElementsAre(0, 1, 2));
  EXPECT_THAT(log.workers, ElementsAre(0, 0, 0));
}

TEST(WorkQueueTest, LowerPriorityValuesFirstThenByArrival) {
  WorkQueue queue({.num_threads = 0});
  Log log(queue, 6);
  const int32_t priorities[] = {2, 0, 1, 0, -5, 2};
  for (int32_t i = 0; i < 6; ++i) queue.Push(log.lane, log.MakeTask(i, priorities[i]));
  queue.HelpUntilZero(log.remaining);
  EXPECT_THAT(log.arguments, ElementsAre(4, 1, 3, 2, 0, 5));
}

TEST(WorkQueueTest, NothingToWaitForReturnsAtOnce) {
  WorkQueue queue({.num_threads = 1});
  std::atomic<int32_t> zero{0};
  queue.HelpUntilZero(zero);
}

TEST(WorkQueueTest, WorkersHaveNumbersFromOne) {
  WorkQueue queue({.num_threads = 3});
  Log log(queue, 1000);
  for (int32_t i = 0; i < 1000; ++i) queue.Push(log.lane, log.MakeTask(i));
  queue.HelpUntilZero(log.remaining);
  for (const int worker : log.workers) {
    EXPECT_GE(worker, 0);
    EXPECT_LE(worker, 3);
  }
  EXPECT_EQ(log.arguments.size(), 1000u);
}

// Tasks that push tasks: each runs once, and the caller sees the end of all.
struct Tree {
  static void Run(void* context, int32_t depth, int) {
    auto* tree = static_cast<Tree*>(context);
    ++tree->ran;
    if (depth > 0) {
      tree->remaining.fetch_add(2);
      for (int i = 0; i < 2; ++i) {
        tree->queue.Push(tree->lane, {.run = &Tree::Run, .context = tree, .argument = depth - 1});
      }
    }
    WorkQueue& queue = tree->queue;
    if (tree->remaining.fetch_sub(1) == 1) queue.WakeAll();
  }
  WorkQueue& queue;
  TaskLane lane = {};
  std::atomic<int32_t> remaining{1};
  std::atomic<int32_t> ran{0};
};

TEST(WorkQueueTest, TasksMayPushTasks) {
  WorkQueue queue({.num_threads = 4});
  for (int round = 0; round < 20; ++round) {
    Tree tree{.queue = queue};
    queue.Push(tree.lane, {.run = &Tree::Run, .context = &tree, .argument = 9});
    queue.HelpUntilZero(tree.remaining);
    EXPECT_EQ(tree.ran, 1023);
  }
}

// Sleeps as often as it can: a lost wake-up shows as a test that never ends. The pusher is a
// worker, the caller, or a thread of its own, so every kind of sleeper has to be woken.
class WakeUpTest : public ::testing::TestWithParam<int> {};

TEST_P(WakeUpTest, NoneIsLost) {
  WorkQueue queue({.num_threads = GetParam(), .spins_before_sleep = 0});
  for (int round = 0; round < 3000; ++round) {
    Tree tree{.queue = queue};
    std::thread pusher;
    const Task task{.run = &Tree::Run, .context = &tree, .argument = round % 4};
    if (round % 16 == 0) {
      pusher = std::thread([&] { queue.Push(tree.lane, task); });
    } else {
      queue.Push(tree.lane, task);
    }
    queue.HelpUntilZero(tree.remaining);
    if (pusher.joinable()) pusher.join();
    ASSERT_EQ(tree.ran, (2 << (round % 4)) - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, WakeUpTest, ::testing::Values(0, 1, 2, 5));

// Two callers wait on one queue for counters of their own; each may run the other's tasks.
TEST(WorkQueueTest, SeveralCallersMayHelp) {
  WorkQueue queue({.num_threads = 1, .spins_before_sleep = 10});
  const auto caller = [&queue] {
    for (int round = 0; round < 500; ++round) {
      Tree tree{.queue = queue};
      queue.Push(tree.lane, {.run = &Tree::Run, .context = &tree, .argument = 3});
      queue.HelpUntilZero(tree.remaining);
      ASSERT_EQ(tree.ran, 15);
    }
  };
  std::thread a(caller), b(caller);
  a.join();
  b.join();
}

}  // namespace
}  // namespace interp
