#include "tools/load_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/testing/no_threads.h"

namespace interp {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::Ge;
using ::testing::SizeIs;

TEST(GenerateLoadTest, EveryThreadCallsUntilTheEnd) {
  std::atomic<int> calls = 0;
  const auto result = GenerateLoad({.num_threads = 3, .duration = 30ms}, [&] {
    ++calls;
    std::this_thread::sleep_for(1ms);
    return absl::OkStatus();
  });
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->latencies_ms, SizeIs(calls.load()));
  EXPECT_GE(calls, 3);
  EXPECT_THAT(result->latencies_ms, Each(Ge(1)));
  EXPECT_EQ(result->num_late, 0);
}

// One thread of a server that is far too slow: what waits counts as latency, and what never began
// is counted.
TEST(GenerateLoadTest, CallsArriveWhetherOrNotEarlierOnesAreDone) {
  const auto result =
      GenerateLoad({.num_threads = 1, .duration = 100ms, .rate = 1000, .seed = 7}, [] {
        std::this_thread::sleep_for(20ms);
        return absl::OkStatus();
      });
  ASSERT_TRUE(result.ok());
  ASSERT_GE(result->latencies_ms.size(), 1u);
  EXPECT_LE(result->latencies_ms.size(), 5u);
  EXPECT_GE(result->latencies_ms.back() + 1, result->latencies_ms.front());
  EXPECT_GT(result->num_late, 20);
}

TEST(GenerateLoadTest, MoreCallsMayArriveThanAnyoneCanCount) {
  for (const double rate : {1e9, 1e300}) {
    const auto result = GenerateLoad({.num_threads = 1, .duration = 10ms, .rate = rate},
                                     [] { return absl::OkStatus(); });
    ASSERT_TRUE(result.ok());
    EXPECT_GE(result->elapsed_ms, 10);
  }
}

TEST(GenerateLoadTest, ArrivalsFollowTheSeed) {
  const auto late = [](uint64_t seed) {
    const auto result =
        GenerateLoad({.num_threads = 1, .duration = 20ms, .rate = 5000, .seed = seed}, [] {
          std::this_thread::sleep_for(25ms);
          return absl::OkStatus();
        });
    return result->num_late + static_cast<int64_t>(result->latencies_ms.size());
  };
  EXPECT_EQ(late(1), late(1));
  EXPECT_NE(late(1), late(3));
}

TEST(GenerateLoadTest, TheFirstErrorEndsAllThreads) {
  std::atomic<int> calls = 0;
  const auto result = GenerateLoad({.num_threads = 4, .duration = 1h}, [&]() -> absl::Status {
    if (++calls == 10) return absl::InternalError("the tenth");
    return absl::OkStatus();
  });
  EXPECT_EQ(result.status().message(), "the tenth");
}

TEST(GenerateLoadTest, ThreadsThatTheSystemRefusesAreAnError) {
  const testing::NoThreads none;
  const auto call = [] { return absl::OkStatus(); };
  const LoadOptions options = {.num_threads = 4, .duration = 1h};
  for (const absl::Status& status :
       {GenerateLoad(options, call).status(), WarmUp(options, 1, call)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                ::testing::StartsWith("caller 1 of 4: the system gives no thread: "));
  }
}

TEST(GenerateLoadTest, AStopKeepsWhatWasMeasured) {
  std::stop_source stop;
  std::atomic<int> calls = 0;
  const auto result = GenerateLoad({.num_threads = 2, .duration = 1h, .stop = stop.get_token()},
                                   [&]() -> absl::Status {
                                     if (++calls < 10) return absl::OkStatus();
                                     stop.request_stop();
                                     return absl::CancelledError("stopped");
                                   });
  ASSERT_TRUE(result.ok());
  EXPECT_GE(result->latencies_ms.size(), 8u);
}

// One call in ten minutes, on average, but for the first.
TEST(GenerateLoadTest, AStopEndsTheWaitForTheNextCall) {
  std::stop_source stop;
  std::jthread stopper;
  const auto result = GenerateLoad(
      {.num_threads = 2, .duration = 1h, .rate = 1.0 / 600, .seed = 7, .stop = stop.get_token()},
      [&] {
        stopper = std::jthread([&stop] { stop.request_stop(); });
        return absl::OkStatus();
      });
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->latencies_ms, SizeIs(1));
}

TEST(WarmUpTest, CallsOnEveryThread) {
  std::atomic<int> calls = 0;
  const auto call = [&] { return ++calls, absl::OkStatus(); };
  EXPECT_TRUE(WarmUp({.num_threads = 3}, 5, call).ok());
  EXPECT_EQ(calls, 15);
  EXPECT_EQ(WarmUp({.num_threads = 3}, 5, [] { return absl::InternalError("cold"); }).message(),
            "cold");
}

}  // namespace
}  // namespace interp
