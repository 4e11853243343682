// Ends of things while others use them: functions, completions, variables, threads and engines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/engines.h"
#include "tests/testing/sample.h"

namespace interp::engine {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::MakeEngine;

constexpr std::chrono::seconds kHangs{60};
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Calls a function when it is destroyed, unless it was moved from.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> end) : end_(std::move(end)) {}
  AtEnd(AtEnd&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  AtEnd& operator=(AtEnd&&) = delete;
  ~AtEnd() {
    if (end_) end_();
  }

 private:
  std::function<void()> end_;
};

class EngineLifetime : public ::testing::TestWithParam<PolicyKind> {
 protected:
  std::unique_ptr<Engine> Make(int workers = 1) {
    return MakeEngine({.policy = GetParam(), .workers = workers});
  }
};
INSTANTIATE_TEST_SUITE_P(Engine, EngineLifetime,
                         ::testing::Values(PolicyKind::kNaive, PolicyKind::kPooled,
                                           PolicyKind::kPerDevice),
                         testing::NameOfPolicy);

TEST_P(EngineLifetime, ACompletionThatACaughtExceptionDropsEndsTheOperation) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  const auto start = [](const Completion&) { throw std::runtime_error("cannot start"); };
  ASSERT_THAT(engine->Push(
                  [&](Completion done) {
                    try {
                      const Completion given = std::move(done);
                      start(given);
                    } catch (const std::exception&) {
                      // Kept to itself.
                    }
                  },
                  {.writes = {v}}),
              IsOk());
  EXPECT_THAT(engine->WaitForVar(v, kHangs),
              FailsWith(absl::StatusCode::kInternal, "its completion was dropped"));
}

TEST_P(EngineLifetime, ARefusedFunctionMayUseTheEngineWhenItIsDestroyed) {
  auto engine = Make();
  const Variable gone = engine->NewVariable();
  ASSERT_THAT(engine->DeleteVariable(gone), IsOk());
  int ends = 0;
  const auto use_engine = [&] {
    const Variable v = engine->NewVariable();
    EXPECT_THAT(engine->Push([] {}, {.writes = {v}}), IsOk());
    EXPECT_THAT(engine->WaitForVar(v, kHangs), IsOk());
    EXPECT_THAT(engine->DeleteVariable(v), IsOk());
    EXPECT_THAT(engine->WaitForAll(kHangs), IsOk());
    ++ends;
  };
  const auto function = [&] { return [end = AtEnd(use_engine)] {}; };
  EXPECT_THAT(engine->Push(function(), {.writes = {gone}}), FailsWith(kInvalid, "was deleted"));
  EXPECT_THAT(engine->DeleteVariable(gone, function()), FailsWith(kInvalid, "deleted before"));
  EXPECT_THAT(engine->Push(function(), {.writes = {Variable{}}}), FailsWith(kInvalid, "never"));
  EXPECT_EQ(ends, 3);
}

// The reader is told before the writer's function is destroyed, which waits for the reader.
TEST_P(EngineLifetime, AFunctionMayWaitWhenItIsDestroyedForWhatItHasLetGo) {
  auto engine = Make();
  const Variable a = engine->NewVariable();
  const Variable b = engine->NewVariable();
  absl::Status waited = absl::UnknownError("it was not destroyed");
  std::optional<Completion> first;
  ASSERT_THAT(engine->Push([&](Completion c) { first = std::move(c); }, {.writes = {a}},
                           {.property = Property::kAsync}),
              IsOk());
  ASSERT_THAT(engine->Push([end = AtEnd([&] { waited = engine->WaitForVar(b, kHangs); })] {},
                           {.writes = {a}}),
              IsOk());
  ASSERT_THAT(engine->Push([] {}, {.reads = {a}, .writes = {b}}), IsOk());
  EXPECT_THAT(first->Done(), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(waited, IsOk());
}

TEST_P(EngineLifetime, AFunctionMayJoinAThreadThatWaitsForIt) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  absl::Status waited = absl::UnknownError("it was not destroyed");
  std::thread waiter;
  std::atomic<bool> waits{false};
  std::optional<Completion> first;
  ASSERT_THAT(engine->Push([&](Completion c) { first = std::move(c); }, {.writes = {v}},
                           {.property = Property::kAsync}),
              IsOk());
  ASSERT_THAT(engine->Push([end = AtEnd([&] { waiter.join(); })] {}, {.writes = {v}}), IsOk());
  waiter = std::thread([&] {
    waits = true;
    waited = engine->WaitForVar(v, kHangs);
  });
  while (!waits || engine->Describe(v).find("a thread that waits") == std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_THAT(first->Done(), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(waited, IsOk());
}

// Destroyed with the last error that names it, when the variable is overwritten or deleted.
TEST_P(EngineLifetime, AnExceptionMayUseTheEngineWhenItIsDestroyed) {
  auto engine = Make();
  struct Thrown {
    explicit Thrown(std::shared_ptr<AtEnd> end) : end(std::move(end)) {}
    std::shared_ptr<AtEnd> end;
  };
  int ends = 0;
  for (const bool overwritten : {true, false}) {
    const Variable v = engine->NewVariable("v");
    auto end = std::make_shared<AtEnd>([&, v] {
      (void)engine->Version(v);
      (void)engine->Describe(v);
      EXPECT_THAT(engine->DeleteVariable(engine->NewVariable("another")), IsOk());
      ++ends;
    });
    ASSERT_THAT(engine->Push([&end] { throw Thrown(std::move(end)); }, {.writes = {v}}), IsOk());
    EXPECT_FALSE(engine->WaitForVar(v).ok());
    EXPECT_TRUE(engine->TakeErrors().empty());
    if (overwritten) {
      ASSERT_THAT(engine->Push([] {}, {.writes = {v}}), IsOk());
    }
    EXPECT_THAT(engine->WaitForAll(), IsOk());
    EXPECT_THAT(engine->DeleteVariable(v), IsOk());
  }
  EXPECT_EQ(ends, 2);
}

TEST_P(EngineLifetime, ForeignThreadsCompleteWhileTheEngineIsDestroyed) {
  const int num_rounds = testing::SampleOf(200, 2000);
  for (int round = 0; round < num_rounds; ++round) {
    auto engine = Make();
    std::atomic<int> runs{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      const Variable v = engine->NewVariable();
      ASSERT_THAT(engine->Push(
                      [&](Completion completion) {
                        threads.emplace_back([completion = std::move(completion)]() mutable {
                          EXPECT_THAT(completion.Done(), IsOk());
                        });
                      },
                      {.writes = {v}}, {.property = Property::kAsync}),
                  IsOk());
      ASSERT_THAT(engine->Push([&] { ++runs; }, {.reads = {v}}), IsOk());
    }
    engine.reset();
    EXPECT_EQ(runs, 2);
    for (std::thread& thread : threads) thread.join();
  }
}

// Workers start each other's groups while the engine is stopped or destroyed.
TEST_P(EngineLifetime, EnginesEndWhileTheirThreadsStart) {
  const int num_rounds = testing::SampleOf(200, 1000);
  for (int round = 0; round < num_rounds; ++round) {
    auto engine = Make(/*workers=*/2);
    std::atomic<int> runs{0};
    const Variable v = engine->NewVariable();
    const OperationOptions urgent{.property = Property::kHostUrgent};
    for (int i = 0; i < 3; ++i) {
      ASSERT_THAT(engine->Push([&] { ++runs; }, {.writes = {v}}), IsOk());
      ASSERT_THAT(engine->Push([&] { ++runs; }, {.reads = {v}}, urgent), IsOk());
      ASSERT_THAT(engine->Push([&] { ++runs; }, {}, urgent), IsOk());
    }
    if (round % 2 == 0) {
      EXPECT_THAT(engine->Stop(), IsOk());
      EXPECT_EQ(runs, 9);
      engine->Start();
      ASSERT_THAT(engine->Push([&] { ++runs; }, {.reads = {v}}, urgent), IsOk());
    }
    engine.reset();
    EXPECT_EQ(runs, round % 2 == 0 ? 10 : 9);
  }
}

// Stops and starts, pushes and waits from several threads: everything runs in the end.
TEST_P(EngineLifetime, StopsAndStartsFromManyThreads) {
  const int num_rounds = testing::SampleOf(100, 500);
  auto engine = Make(/*workers=*/2);
  std::atomic<int> runs{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const Variable v = engine->NewVariable();
      for (int i = 0; i < num_rounds; ++i) {
        EXPECT_THAT(engine->Push(
                        [&] {
                          const Variable w = engine->NewVariable();
                          EXPECT_THAT(engine->Push([&] { ++runs; }, {.writes = {w}},
                                                   {.property = Property::kHostUrgent}),
                                      IsOk());
                          // A stop drains, so an operation never sees a stopped engine.
                          EXPECT_THAT(engine->WaitForVar(w, kHangs), IsOk());
                          EXPECT_THAT(engine->DeleteVariable(w), IsOk());
                        },
                        {.writes = {v}}),
                    IsOk());
        if (i % 8 == t) (void)engine->WaitForVar(v);
      }
    });
  }
  std::vector<std::thread> stoppers;
  for (int t = 0; t < 2; ++t) {
    stoppers.emplace_back([&] {
      while (!over) {
        EXPECT_THAT(engine->Stop(), IsOk());
        std::this_thread::yield();
        engine->Start();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  for (std::thread& thread : stoppers) thread.join();
  engine->Start();
  EXPECT_THAT(engine->WaitForAll(kHangs), IsOk());
  EXPECT_EQ(runs, 2 * num_rounds);
}

// A refused push is in flight for a moment. Who sees it and waits for everything is woken.
TEST_P(EngineLifetime, RefusedPushesKeepNobodyWaiting) {
  const int num_rounds = testing::SampleOf(2'000, 50'000);
  auto engine = Make();
  const Variable gone = engine->NewVariable();
  ASSERT_THAT(engine->DeleteVariable(gone), IsOk());
  std::atomic<bool> over{false};
  std::thread pusher([&] {
    for (int i = 0; i < num_rounds; ++i) {
      EXPECT_THAT(engine->Push([] {}, {.writes = {gone}}), FailsWith(kInvalid, ""));
    }
    over = true;
  });
  while (!over) EXPECT_THAT(engine->WaitForAll(kHangs), IsOk());
  pusher.join();
}

TEST_P(EngineLifetime, VariablesOfAnotherEngineAreNoticed) {
  auto engine = Make();
  auto other = Make();
  const Variable foreign = other->NewVariable();
  const auto invalid = FailsWith(kInvalid, "another engine");
  EXPECT_THAT(engine->Push([] {}, {.reads = {foreign}}), invalid);
  EXPECT_THAT(engine->NewOperator([] {}, {.reads = {}, .writes = {foreign}}), invalid);
  EXPECT_THAT(engine->WaitForVar(foreign), invalid);
  EXPECT_THAT(engine->WaitForWrite(foreign), invalid);
  EXPECT_THAT(engine->DeleteVariable(foreign), invalid);
  EXPECT_THAT(engine->DeleteVariable(foreign, [] {}), invalid);
  EXPECT_EQ(engine->Version(foreign), 0);
  EXPECT_EQ(engine->Describe(foreign), "a variable of another engine\n");
  Operator op = *other->NewOperator([] {}, {.reads = {foreign}});
  EXPECT_THAT(engine->Push(op), invalid);
  EXPECT_THAT(other->Push(op), IsOk());
  EXPECT_THAT(other->WaitForAll(), IsOk());
  // Not even its memory is there any more.
  other.reset();
  EXPECT_THAT(engine->WaitForVar(foreign), invalid);
}

TEST_P(EngineLifetime, ErrorsThatNobodyAsksForAreBounded) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  for (int i = 0; i < 5000; ++i) {
    ASSERT_THAT(engine->Push([] { return absl::InternalError("again"); }, {.writes = {v}}), IsOk());
  }
  EXPECT_THAT(engine->WaitForAll(),
              FailsWith(absl::StatusCode::kInternal, "5000 operations failed: operation"));
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  for (int i = 0; i < 5000; ++i) {
    ASSERT_THAT(engine->Push([] { return absl::InternalError("again"); }, {.writes = {v}}), IsOk());
  }
  EXPECT_THAT(engine->WaitForWrite(v), FailsWith(absl::StatusCode::kInternal, "again"));
  EXPECT_LE(engine->TakeErrors().size(), 1024);
}

TEST(EnginePolicies, ManyDevicesHaveQueuesAndStreamsOfTheirOwn) {
  std::vector<Place> devices;
  for (int i = 0; i < 100; ++i) devices.push_back({PlaceKind::kSim, static_cast<int8_t>(i)});
  const Policy policy = MakePolicy(PolicyKind::kPerDevice, devices, {});
  for (int place = 1; place <= 100; ++place) {
    const Route& route = policy.For(place, Property::kCopyToDevice);
    ASSERT_EQ(route.stream, (place - 1) * kStreamsPerDevice + 3);
    ASSERT_GE(route.queue, 0);
    ASSERT_LT(route.queue, policy.queues.size());
    EXPECT_EQ(policy.queues[route.queue].name, absl::StrCat("sim:", place - 1, "-to"));
  }
}

}  // namespace
}  // namespace interp::engine
