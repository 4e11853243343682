// Waits inside operations: a stand-in takes the place of the worker that waits, across queues,
// engines and policies; what waits for itself gets an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "tests/testing/engines.h"

namespace interp::engine::engine_waits_test {
namespace {

using std::chrono::milliseconds;
using testing::FailsWith;
using testing::Gate;
using testing::IsOk;
using testing::MakeEngine;

// Long enough for a loaded machine: a test that needs it has failed.
constexpr std::chrono::seconds kHangs{60};

class EngineWaits : public ::testing::TestWithParam<PolicyKind> {
 protected:
  std::unique_ptr<Engine> Make(int workers = 1) {
    return MakeEngine({.policy = GetParam(), .workers = workers});
  }
};
INSTANTIATE_TEST_SUITE_P(Engine, EngineWaits,
                         ::testing::Values(PolicyKind::kNaive, PolicyKind::kPooled,
                                           PolicyKind::kPerDevice),
                         testing::NameOfPolicy);

// The normal worker waits for the urgent one, which waits for the normal one.
TEST_P(EngineWaits, AcrossQueues) {
  auto engine = Make();
  const Variable x = engine->NewVariable("x");
  const Variable y = engine->NewVariable("y");
  absl::Status outer;
  absl::Status inner;
  ASSERT_THAT(engine->Push(
                  [&] {
                    EXPECT_THAT(engine->Push(
                                    [&] {
                                      EXPECT_THAT(engine->Push([] {}, {.writes = {y}}), IsOk());
                                      inner = engine->WaitForVar(y, kHangs);
                                    },
                                    {.writes = {x}}, {.property = Property::kHostUrgent}),
                                IsOk());
                    outer = engine->WaitForVar(x, kHangs);
                  },
                  {}),
              IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(outer, IsOk());
  EXPECT_THAT(inner, IsOk());
}

TEST_P(EngineWaits, NestedDeeply) {
  auto engine = Make();
  constexpr int kDepth = 100;
  std::atomic<int> runs{0};
  std::function<void(int)> descend = [&](int depth) {
    ++runs;
    if (depth == kDepth) return;
    const Variable v = engine->NewVariable();
    EXPECT_THAT(
        engine->Push([&, depth] { descend(depth + 1); }, {.writes = {v}},
                     {.property = depth % 2 == 0 ? Property::kHostUrgent : Property::kNormal}),
        IsOk());
    EXPECT_THAT(engine->WaitForVar(v, kHangs), IsOk());
    EXPECT_THAT(engine->DeleteVariable(v), IsOk());
  };
  ASSERT_THAT(engine->Push([&] { descend(0); }, {}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(runs, kDepth + 1);
}

// The thread of that queue runs its operations and nothing else.
TEST_P(EngineWaits, InWhatAnOperationOfAUsersQueueMadeReady) {
  auto engine = MakeEngine({.policy = GetParam(), .queues = {"mine"}});
  const Variable v = engine->NewVariable("v");
  const Variable w = engine->NewVariable("w");
  Gate gate;
  std::thread::id of_queue;
  std::thread::id of_waiting;
  absl::Status waited;
  // What an operation owns ends after it is complete, and what it made ready goes first.
  const auto owned = std::make_shared<int>();
  ASSERT_THAT(engine->Push(
                  [&, owned] {
                    of_queue = std::this_thread::get_id();
                    gate.Pass();
                  },
                  {.writes = {v}}, {.queue = 0}),
              IsOk());
  ASSERT_THAT(engine->Push(
                  [&] {
                    of_waiting = std::this_thread::get_id();
                    EXPECT_THAT(engine->Push([] {}, {.writes = {w}}, {.queue = 0}), IsOk());
                    waited = engine->WaitForVar(w, kHangs);
                  },
                  {.reads = {v}}),
              IsOk());
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(waited, IsOk());
  EXPECT_NE(of_waiting, of_queue);
}

// An operation that waits is overtaken by one that was pushed later and that lets it go on.
TEST(EngineWaitsInside, TheWaitingWorkersPlaceIsTaken) {
  auto engine = MakeEngine({.workers = 1});
  const Variable v = engine->NewVariable();
  std::optional<Completion> completion;
  Gate started;
  ASSERT_THAT(engine->Push([&](Completion c) { completion = std::move(c); }, {.writes = {v}}),
              IsOk());
  absl::Status waited;
  ASSERT_THAT(engine->Push([&] { waited = engine->WaitForVar(v, kHangs); }, {}), IsOk());
  ASSERT_THAT(engine->Push([&] { EXPECT_THAT(completion->Done(), IsOk()); }, {}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(waited, IsOk());
}

TEST(EngineWaitsInside, StandInsAreReused) {
  auto engine = MakeEngine({.workers = 1});
  std::set<int> workers;
  const Variable v = engine->NewVariable();
  const Variable lock = engine->NewVariable();
  for (int i = 0; i < 200; ++i) {
    ASSERT_THAT(engine->Push(
                    [&] {
                      EXPECT_THAT(
                          engine->Push([&](const RunContext& ctx) { workers.insert(ctx.worker); },
                                       {.writes = {v}}),
                          IsOk());
                      EXPECT_THAT(engine->WaitForVar(v, kHangs), IsOk());
                    },
                    {.writes = {lock}}),
                IsOk());
  }
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  // The worker, its stand-in, and that of a stand-in which was still about to leave.
  EXPECT_LE(workers.size(), 3);
}

TEST(EngineWaitsInside, MoreThanThereAreStandInsIsAnError) {
  auto engine = MakeEngine({.workers = 1, .max_stand_ins = 2});
  std::vector<absl::Status> waited(5);
  std::function<void(int)> descend = [&](int depth) {
    if (depth == 5) return;
    const Variable v = engine->NewVariable();
    EXPECT_THAT(engine->Push([&, depth] { descend(depth + 1); }, {.writes = {v}}), IsOk());
    waited[depth] = engine->WaitForVar(v, kHangs);
  };
  for (int round = 0; round < 3; ++round) {
    ASSERT_THAT(engine->Push([&] { descend(0); }, {}), IsOk());
    EXPECT_THAT(engine->WaitForAll(), IsOk());
    EXPECT_THAT(waited[0], IsOk());
    EXPECT_THAT(waited[1], IsOk());
    EXPECT_THAT(waited[2], FailsWith(absl::StatusCode::kResourceExhausted, "max_stand_ins is 2"));
  }
  EXPECT_THAT(Engine::Create({.max_stand_ins = 0}),
              FailsWith(absl::StatusCode::kInvalidArgument, "max_stand_ins is 0"));
}

// Two operations that run side by side, each of which waits for what the other one writes, in
// `waits_for` of which the writer may be a third operation behind it.
void ExpectCycleIsFound(bool through_blocked) {
  auto engine = MakeEngine({.workers = 2});
  const Variable a = engine->NewVariable("a");
  const Variable b = engine->NewVariable("b");
  const Variable c = engine->NewVariable("c");
  std::latch running(2);
  Gate pushed;
  std::vector<absl::Status> waited(2);
  const auto push = [&](int i, Variable mine, Variable other) {
    ASSERT_THAT(engine->Push(
                    [&, i, other] {
                      running.arrive_and_wait();
                      pushed.Pass();
                      waited[i] = engine->WaitForVar(other);
                    },
                    {.writes = {mine}}),
                IsOk());
  };
  push(0, a, through_blocked ? c : b);
  push(1, b, a);
  // Blocked by the second, and by nothing else.
  ASSERT_THAT(engine->Push([] {}, {.reads = {b}, .writes = {c}}), IsOk());
  pushed.Open();
  EXPECT_THAT(engine->WaitForAll(kHangs), IsOk());
  const auto found = FailsWith(absl::StatusCode::kFailedPrecondition, "waits for itself");
  EXPECT_THAT(waited, ::testing::Contains(found));
}
TEST(EngineWaitsInside, CyclesOfThreadsAreErrors) { ExpectCycleIsFound(false); }
TEST(EngineWaitsInside, CyclesThroughBlockedOperationsAreErrors) { ExpectCycleIsFound(true); }

TEST(EngineWaitsInside, AWaitWithADeadlineIsNoCycle) {
  auto engine = MakeEngine({.workers = 2});
  const Variable a = engine->NewVariable("a");
  const Variable b = engine->NewVariable("b");
  std::latch running(2);
  absl::Status patient;
  ASSERT_THAT(engine->Push(
                  [&] {
                    running.arrive_and_wait();
                    patient = engine->WaitForVar(b);
                  },
                  {.writes = {a}}),
              IsOk());
  ASSERT_THAT(engine->Push(
                  [&] {
                    running.arrive_and_wait();
                    (void)engine->WaitForVar(a, milliseconds(100));
                  },
                  {.writes = {b}}),
              IsOk());
  EXPECT_THAT(engine->WaitForAll(kHangs), IsOk());
  EXPECT_THAT(patient, IsOk());
}

// Whoever completes an asynchronous operation may be anywhere, so its wait is no cycle.
TEST(EngineWaitsInside, AnAsynchronousOperationMayWaitForItself) {
  auto engine = MakeEngine({.workers = 1});
  const Variable v = engine->NewVariable();
  absl::Status waited;
  std::thread other;
  ASSERT_THAT(engine->Push(
                  [&](Completion completion) {
                    other = std::thread([completion = std::move(completion)]() mutable {
                      std::this_thread::sleep_for(milliseconds(30));
                      EXPECT_THAT(completion.Done(), IsOk());
                    });
                    waited = engine->WaitForVar(v, kHangs);
                  },
                  {.writes = {v}}),
              IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(waited, IsOk());
  other.join();
}

// The worker of one engine waits for another engine, whose operation needs that worker's place.
TEST_P(EngineWaits, AcrossEngines) {
  auto first = MakeEngine({.workers = 1});
  auto second = Make();
  const Variable a = first->NewVariable();
  const Variable b = second->NewVariable();
  absl::Status outer;
  absl::Status inner;
  ASSERT_THAT(first->Push(
                  [&] {
                    EXPECT_THAT(second->Push(
                                    [&] {
                                      EXPECT_THAT(first->Push([] {}, {.writes = {a}}), IsOk());
                                      inner = first->WaitForVar(a, kHangs);
                                    },
                                    {.writes = {b}}),
                                IsOk());
                    outer = second->WaitForAll(kHangs);
                  },
                  {}),
              IsOk());
  EXPECT_THAT(first->WaitForAll(), IsOk());
  EXPECT_THAT(outer, IsOk());
  EXPECT_THAT(inner, IsOk());
}

// What an operation's completion makes ready would run on this thread, which waits for it.
TEST_P(EngineWaits, ForWhatThisThreadHasMadeReady) {
  auto engine = Make();
  const Variable a = engine->NewVariable();
  const Variable c = engine->NewVariable();
  std::optional<Completion> completion;
  Gate kept;
  ASSERT_THAT(engine->Push(
                  [&](Completion given) {
                    completion = std::move(given);
                    kept.Open();
                    kept.Pass();
                  },
                  {.writes = {a}}),
              IsOk());
  ASSERT_THAT(engine->Push([] {}, {.reads = {a}, .writes = {c}}), IsOk());
  kept.AwaitArrival();
  absl::Status waited;
  ASSERT_THAT(engine->Push(
                  [&] {
                    EXPECT_THAT(completion->Done(), IsOk());
                    waited = engine->WaitForVar(c, kHangs);
                  },
                  {}),
              IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(waited, IsOk());
}

TEST(EngineWaitsInside, OnAStoppedEngineAreErrors) {
  auto stopped = MakeEngine({.workers = 1});
  auto engine = MakeEngine({.workers = 1});
  const Variable v = stopped->NewVariable();
  ASSERT_THAT(stopped->Stop(), IsOk());
  ASSERT_THAT(stopped->Push([] {}, {.writes = {v}}), IsOk());
  absl::Status waited;
  ASSERT_THAT(engine->Push([&] { waited = stopped->WaitForVar(v); }, {}), IsOk());
  EXPECT_THAT(engine->WaitForAll(kHangs), IsOk());
  EXPECT_THAT(waited, FailsWith(absl::StatusCode::kFailedPrecondition, "stopped"));
  stopped->Start();
}

}  // namespace
}  // namespace interp::engine::engine_waits_test
