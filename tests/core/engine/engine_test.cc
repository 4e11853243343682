// What an engine promises to those who push and wait. Errors: engine_errors_test; random programs:
// engine_random_test; devices: engine_device_test; forks: engine_fork_test.
// Long because it goes through the engine's whole interface.
#include "core/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/testing/engines.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sample.h"

namespace interp::engine {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::Gate;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::MakeEngine;

// Every test of this suite runs under each policy.
class EveryPolicy : public ::testing::TestWithParam<PolicyKind> {
 protected:
  std::unique_ptr<Engine> Make(int workers = 1) {
    return MakeEngine({.policy = GetParam(), .workers = workers});
  }
  // Whether an operation can be held back while its pusher goes on.
  bool has_threads() const { return GetParam() != PolicyKind::kNaive; }
};
INSTANTIATE_TEST_SUITE_P(Engine, EveryPolicy,
                         ::testing::Values(PolicyKind::kNaive, PolicyKind::kPooled,
                                           PolicyKind::kPerDevice),
                         testing::NameOfPolicy);

TEST_P(EveryPolicy, RunsWhatIsPushed) {
  auto engine = Make();
  const Variable a = engine->NewVariable("A");
  int x = 0;
  int y = 0;
  const Variable b = engine->NewVariable("B");
  EXPECT_THAT(engine->Push([&] { x = 1; }, {.writes = {a}}), IsOk());
  EXPECT_THAT(engine->Push([&] { y = x + 1; }, {.reads = {a}, .writes = {b}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(b), IsOk());
  EXPECT_EQ(y, 2);
}

TEST_P(EveryPolicy, ReadersRunBesideEachOtherAndWritersAlone) {
  auto engine = Make(/*workers=*/4);
  const Variable v = engine->NewVariable();
  std::atomic<int> readers{0};
  std::atomic<int> writers{0};
  std::atomic<int> most_readers{0};
  std::atomic<int> wrong{0};
  for (int i = 0; i < 200; ++i) {
    if (i % 8 == 0) {
      ASSERT_THAT(engine->Push(
                      [&] {
                        wrong += (++writers != 1 || readers != 0) ? 1 : 0;
                        std::this_thread::yield();
                        --writers;
                      },
                      {.writes = {v}}),
                  IsOk());
    } else {
      ASSERT_THAT(engine->Push(
                      [&] {
                        const int now = ++readers;
                        most_readers = std::max<int>(most_readers, now);
                        wrong += writers != 0 ? 1 : 0;
                        std::this_thread::yield();
                        --readers;
                      },
                      {.reads = {v}}),
                  IsOk());
    }
  }
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(wrong, 0);
}

TEST_P(EveryPolicy, VersionsCountCompletedWrites) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  for (int i = 0; i < 10; ++i) ASSERT_THAT(engine->Push([] {}, {.reads = {v}}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(engine->Version(v), 0);
  for (int i = 0; i < 10; ++i) ASSERT_THAT(engine->Push([] {}, {.writes = {v}}), IsOk());
  EXPECT_THAT(engine->WaitForWrite(v), IsOk());
  EXPECT_EQ(engine->Version(v), 10);
}

TEST_P(EveryPolicy, RepeatedVariablesCountOnce) {
  auto engine = Make();
  const Variable a = engine->NewVariable();
  const Variable b = engine->NewVariable();
  int runs = 0;
  EXPECT_THAT(engine->Push([&] { ++runs; }, {.reads = {a, a, b}, .writes = {b, b, a, b}}), IsOk());
  EXPECT_THAT(engine->Push([&] { ++runs; }, {.reads = {a, a, a}}), IsOk());
  EXPECT_THAT(engine->WaitForAll(milliseconds(10000)), IsOk());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(engine->Version(b), 1);
}

// As MXNet's PushFuncND: five variables, each read, written, or both.
TEST_P(EveryPolicy, UpdatesAreWritesWhoseOldContentMatters) {
  auto engine = Make();
  const Variable a = engine->NewVariable("A");
  const auto bad = [] { return absl::DataLossError("bad"); };
  bool ran = false;
  EXPECT_THAT(engine->Push(bad, {.writes = {a}}), IsOk());
  EXPECT_THAT(engine->Push([&] { ran = true; }, {.updates = {a}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), FailsWith(absl::StatusCode::kDataLoss, "bad"));
  EXPECT_FALSE(ran);
  EXPECT_EQ(engine->Version(a), 2);
  // Named as overwritten, too, it is updated nevertheless.
  EXPECT_THAT(engine->Push([&] { ran = true; }, {.writes = {a}, .updates = {a}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), FailsWith(absl::StatusCode::kDataLoss, "bad"));
  EXPECT_FALSE(ran);
  EXPECT_THAT(engine->Push([] {}, {.writes = {a}}), IsOk());
  EXPECT_THAT(engine->Push([&] { ran = true; }, {.updates = {a}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), IsOk());
  EXPECT_TRUE(ran);
  EXPECT_THAT(engine->Push([] {}, {.updates = {Variable()}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "never made"));
}

TEST_P(EveryPolicy, EverySplitOfVariables) {
  auto engine = Make();
  std::vector<Variable> variables(5);
  for (Variable& v : variables) v = engine->NewVariable();
  const Variable one_at_a_time = engine->NewVariable();
  std::vector<uint64_t> writes(5, 0);
  int runs = 0;
  for (int split = 0; split < 3 * 3 * 3 * 3 * 3; ++split) {
    std::vector<Variable> read;
    std::vector<Variable> written = {one_at_a_time};
    for (int i = 0, rest = split; i < 5; ++i, rest /= 3) {
      if (rest % 3 != 1) read.push_back(variables[i]);
      if (rest % 3 != 0) written.push_back(variables[i]);
      writes[i] += rest % 3 != 0 ? 1 : 0;
    }
    ASSERT_THAT(engine->Push([&] { ++runs; }, {.reads = read, .writes = written}), IsOk());
  }
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(runs, 243);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(engine->Version(variables[i]), writes[i]) << i;
}

TEST_P(EveryPolicy, ManyVariablesAtOnce) {
  auto engine = Make();
  std::vector<Variable> variables;
  for (int i = 0; i < 1000; ++i) variables.push_back(engine->NewVariable());
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
    std::rotate(variables.begin(), variables.begin() + 7, variables.end());
    ASSERT_THAT(engine->Push([&] { ++sum; }, {.reads = {}, .writes = variables}), IsOk());
  }
  EXPECT_THAT(engine->WaitForVar(variables[3]), IsOk());
  EXPECT_EQ(sum, 20);
  const std::vector<Variable> too_many(65536, variables[0]);
  EXPECT_THAT(engine->Push([] {}, {.reads = too_many}),
              FailsWith(absl::StatusCode::kInvalidArgument, "65536 variables"));
}

TEST_P(EveryPolicy, LargeAndMoveOnlyFunctions) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  auto owned = std::make_unique<int>(5);
  std::array<int, 100> many{};
  many[99] = 7;
  int sum = 0;
  EXPECT_THAT(engine->Push([&sum, many, owned = std::move(owned)] { sum = many[99] + *owned; },
                           {.writes = {v}}),
              IsOk());
  EXPECT_THAT(engine->WaitForVar(v), IsOk());
  EXPECT_EQ(sum, 12);
}

TEST_P(EveryPolicy, FunctionsEndWithTheirOperation) {
  auto engine = Make();
  auto token = std::make_shared<int>(0);
  const Variable v = engine->NewVariable();
  EXPECT_THAT(engine->Push([token] {}, {.writes = {v}}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_THAT(engine->DeleteVariable(v), IsOk());
  EXPECT_THAT(engine->Push([token] {}, {.writes = {v}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "was deleted"));
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(EveryPolicy, AsynchronousOperationsCompleteFromAnotherThread) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  std::atomic<bool> done{false};
  std::thread other;
  EXPECT_THAT(engine->Push(
                  [&](Completion completion) {
                    other = std::thread([&, completion = std::move(completion)]() mutable {
                      std::this_thread::sleep_for(milliseconds(20));
                      done = true;
                      EXPECT_THAT(completion.Done(), IsOk());
                      EXPECT_THAT(completion.Done(),
                                  FailsWith(absl::StatusCode::kFailedPrecondition, ""));
                    });
                  },
                  {.writes = {v}}),
              IsOk());
  bool seen = false;
  EXPECT_THAT(engine->Push([&] { seen = done; }, {.reads = {v}}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_TRUE(seen);
  other.join();
}

// As behind what CommThread completes, which is to serve what such an operation then asks for.
TEST_P(EveryPolicy, WhatWaitsForWhoCompletesAnOperationMayFollowIt) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  std::promise<Completion> asked;
  std::promise<void> served;
  EXPECT_THAT(engine->Push([&](Completion completion) { asked.set_value(std::move(completion)); },
                           {.writes = {v}}),
              IsOk());
  std::future_status waited = std::future_status::timeout;
  EXPECT_THAT(engine->Push([&] { waited = served.get_future().wait_for(std::chrono::seconds(10)); },
                           {.reads = {v}}),
              IsOk());
  std::thread server([&] {
    EXPECT_THAT(asked.get_future().get().Done(), IsOk());
    served.set_value();
  });
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(waited, std::future_status::ready);
  server.join();
}

TEST(Engine, WhoCompletesAnOperationRunsWhatNobodyElseCan) {
  auto engine = MakeEngine({.policy = PolicyKind::kNaive, .max_stand_ins = 1});
  Gate gate;
  std::thread::id ran_on;
  const auto complete = [&](const std::function<void()>& follower) {
    const Variable v = engine->NewVariable();
    std::promise<Completion> asked;
    EXPECT_THAT(engine->Push([&](Completion completion) { asked.set_value(std::move(completion)); },
                             {.writes = {v}}),
                IsOk());
    EXPECT_THAT(engine->Push(follower, {.reads = {v}}), IsOk());
    EXPECT_THAT(asked.get_future().get().Done(), IsOk());
  };
  complete([&] { gate.Pass(); });  // keeps the only stand-in
  gate.AwaitArrival();
  complete([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
}

TEST_P(EveryPolicy, LongChainsDoNotDeepenTheStack) {
  // The first operation ends when all others are pushed.
  auto engine = MakeEngine({.policy = GetParam(), .max_in_flight = 0});
  const Variable v = engine->NewVariable();
  std::optional<Completion> first;
  std::mutex mutex;
  ASSERT_THAT(engine->Push(
                  [&](Completion completion) {
                    std::lock_guard<std::mutex> lock(mutex);
                    first.emplace(std::move(completion));
                  },
                  {.writes = {v}}),
              IsOk());
  int runs = 0;
  for (int i = 0; i < 50000; ++i) {
    ASSERT_THAT(engine->Push(
                    [&](Completion completion) {
                      ++runs;
                      EXPECT_THAT(completion.Done(), IsOk());
                    },
                    {.writes = {v}}),
                IsOk());
  }
  while (true) {
    std::lock_guard<std::mutex> lock(mutex);
    if (first.has_value()) break;
  }
  EXPECT_THAT(first->Done(), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(runs, 50000);
}

TEST_P(EveryPolicy, OperationsMayPush) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  std::vector<int> order;
  EXPECT_THAT(engine->Push(
                  [&] {
                    order.push_back(1);
                    EXPECT_THAT(engine->Push([&] { order.push_back(2); }, {.writes = {v}}), IsOk());
                    order.push_back(3);
                  },
                  {.writes = {v}}),
              IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(order, ElementsAre(1, 3, 2));
}

TEST_P(EveryPolicy, WaitsInsideOperationsWithOneWorker) {
  auto engine = Make(/*workers=*/1);
  const Variable a = engine->NewVariable("a");
  const Variable b = engine->NewVariable("b");
  int value = 0;
  int seen = -1;
  EXPECT_THAT(engine->Push(
                  [&] {
                    for (int i = 0; i < 100; ++i) {
                      EXPECT_THAT(engine->Push([&] { ++value; }, {.writes = {b}}), IsOk());
                    }
                    EXPECT_THAT(engine->WaitForVar(b), IsOk());
                    seen = value;
                  },
                  {.writes = {a}}),
              IsOk());
  EXPECT_THAT(engine->WaitForVar(a, milliseconds(10000)), IsOk());
  EXPECT_EQ(seen, 100);
  EXPECT_EQ(engine->counters().stood_in, has_threads() ? 100 : 0);
}

TEST_P(EveryPolicy, WaitingForOneselfIsAnErrorAndNoHang) {
  auto engine = Make();
  const Variable v = engine->NewVariable("mine");
  absl::Status own;
  absl::Status all;
  absl::Status stop;
  EXPECT_THAT(engine->Push(
                  [&] {
                    own = engine->WaitForVar(v);
                    all = engine->WaitForAll();
                    stop = engine->Stop();
                  },
                  {.writes = {v}}, {.name = "selfish"}),
              IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(own, FailsWith(absl::StatusCode::kFailedPrecondition, "'selfish' waits for itself"));
  EXPECT_THAT(all, FailsWith(absl::StatusCode::kFailedPrecondition, ""));
  EXPECT_THAT(stop, FailsWith(absl::StatusCode::kFailedPrecondition, ""));
}

TEST_P(EveryPolicy, DeletionComesAfterTheLastUse) {
  auto engine = Make();
  const Variable v = engine->NewVariable("v");
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(engine->Push([&, i] { order.push_back(i); }, {.writes = {v}}), IsOk());
  }
  EXPECT_THAT(engine->DeleteVariable(v, [&] { order.push_back(9); }), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 9));
}

TEST_P(EveryPolicy, HandlesOfDeletedVariablesAreVoid) {
  auto engine = Make();
  const Variable v = engine->NewVariable("v");
  const Variable other = engine->NewVariable();
  EXPECT_THAT(engine->DeleteVariable(v), IsOk());
  const auto invalid = FailsWith(absl::StatusCode::kInvalidArgument, "");
  EXPECT_THAT(engine->DeleteVariable(v), invalid);
  EXPECT_THAT(engine->DeleteVariable(v, [] {}), invalid);
  EXPECT_THAT(engine->Push([] {}, {.reads = {other, v}}), invalid);
  EXPECT_THAT(engine->WaitForVar(v), invalid);
  EXPECT_THAT(engine->WaitForWrite(v), invalid);
  EXPECT_EQ(engine->Version(v), 0);
  EXPECT_EQ(engine->Describe(v), "a deleted variable\n");
  // Its memory is used again, but the handle is another.
  std::vector<Variable> fresh;
  for (int i = 0; i < 200; ++i) fresh.push_back(engine->NewVariable());
  EXPECT_THAT(fresh, ::testing::Not(::testing::Contains(v)));
  EXPECT_THAT(engine->Push([] {}, {.reads = {v}, .writes = {fresh[0]}}), invalid);
  EXPECT_THAT(engine->Push([] {}, {.reads = {Variable{}}}), invalid);
  EXPECT_THAT(engine->WaitForAll(), IsOk());
}

TEST_P(EveryPolicy, RecordedOperators) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  int runs = 0;
  absl::StatusOr<Operator> op =
      engine->NewOperator([&] { ++runs; }, {.reads = {v}, .writes = {v, v}});
  ASSERT_THAT(op, IsOk());
  for (int i = 0; i < 5000; ++i) ASSERT_THAT(engine->Push(*op), IsOk());
  EXPECT_THAT(engine->PushAll(std::vector<Operator>(100, *op)), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(runs, 5100);
  EXPECT_EQ(engine->Version(v), 5100);
  EXPECT_THAT(engine->Push(Operator()), FailsWith(absl::StatusCode::kInvalidArgument, ""));
}

TEST_P(EveryPolicy, BatchesKeepTheOrderOfPushes) {
  auto engine = Make();
  const Variable v = engine->NewVariable();
  std::vector<int> order;
  const auto append = [&](int i) { return [&order, i] { order.push_back(i); }; };
  {
    Batch batch(*engine);
    for (int i = 0; i < 1000; i += 2) {
      ASSERT_THAT(batch.Push(append(i), {.writes = {v}}), IsOk());
      ASSERT_THAT(engine->Push(append(i + 1), {.writes = {v}}), IsOk());
    }
  }
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(order, ::testing::SizeIs(1000));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(EveryPolicy, WhoWaitsInABatchIsNotKeptWaitingByIt) {
  auto engine = MakeEngine({.policy = GetParam(), .max_in_flight = 3});
  const Variable v = engine->NewVariable();
  std::atomic<int> runs{0};
  const auto run = [&] { ++runs; };
  Batch outer(*engine);
  Batch inner(*engine);
  EXPECT_THAT(outer.Push(run, {.writes = {v}}), IsOk());
  EXPECT_THAT(inner.Push(run, {.reads = {v}}), IsOk());
  EXPECT_THAT(engine->WaitForWrite(v), IsOk());
  EXPECT_EQ(runs, 2);
  EXPECT_THAT(inner.Push(run, {.writes = {v}}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(runs, 3);
  // More than the bound lets be in flight.
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(inner.Push(run, {}), IsOk());
    EXPECT_THAT(engine->Push(run, {}), IsOk());
  }
  EXPECT_THAT(outer.Push(run, {.writes = {v}}), IsOk());
  EXPECT_THAT(engine->Stop(), IsOk());
  EXPECT_EQ(runs, 44);
  engine->Start();
}

TEST_P(EveryPolicy, WhatABatchCannotPushIsRefused) {
  auto engine = Make();
  Batch batch(*engine);
  const auto invalid = FailsWith(absl::StatusCode::kInvalidArgument, "");
  EXPECT_THAT(batch.Push(Operator()), invalid);
  EXPECT_THAT(batch.Push([] {}, {.reads = {Variable{}}}), invalid);
  bool ran = false;
  EXPECT_THAT(batch.Push([&] { ran = true; }, {}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_TRUE(ran);
}

TEST_P(EveryPolicy, OperatorsMayGoAtAnyTime) {
  auto engine = Make();
  Gate gate;
  auto token = std::make_shared<std::atomic<int>>(0);
  const Variable v = engine->NewVariable();
  if (has_threads()) {
    ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.writes = {v}}), IsOk());
  }
  {
    // One with variables, which go before it, and one without.
    Operator with = *engine->NewOperator([token] { ++*token; }, {.reads = {}, .writes = {v}});
    Operator without = *engine->NewOperator([token] { ++*token; }, {});
    for (int i = 0; i < 10; ++i) {
      EXPECT_THAT(engine->Push(with), IsOk());
      EXPECT_THAT(engine->Push(without), IsOk());
    }
    EXPECT_THAT(engine->DeleteVariable(v), IsOk());
    EXPECT_THAT(engine->Push(with), FailsWith(absl::StatusCode::kInvalidArgument, ""));
  }
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(*token, 20);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(EveryPolicy, StopsAndStarts) {
  auto engine = Make(/*workers=*/2);
  const Variable v = engine->NewVariable();
  std::atomic<int> runs{0};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i)
      ASSERT_THAT(engine->Push([&] { ++runs; }, {.writes = {v}}), IsOk());
    EXPECT_THAT(engine->Stop(), IsOk());
    EXPECT_EQ(runs, (round + 1) * 10);
    EXPECT_THAT(engine->Stop(), IsOk());
    engine->Start();
  }
  engine->Start();
}

TEST_P(EveryPolicy, DestructionDrains) {
  std::atomic<int> runs{0};
  {
    auto engine = Make();
    const Variable v = engine->NewVariable();
    for (int i = 0; i < 1000; ++i) {
      ASSERT_THAT(engine->Push([&] { ++runs; }, {.writes = {v}}), IsOk());
    }
    EXPECT_THAT(engine->Stop(), IsOk());
    ASSERT_THAT(engine->Push([&] { ++runs; }, {.writes = {v}}), IsOk());
  }
  EXPECT_EQ(runs, 1001);
}

TEST_P(EveryPolicy, ObserversSeeEveryOperation) {
  struct Counter : EngineObserver {
    void OnOperation(const Operation& operation, int64_t start_ns, int64_t end_ns) override {
      std::lock_guard<std::mutex> lock(mutex);
      names.emplace_back(operation.name);
      EXPECT_LE(start_ns, end_ns);
    }
    std::mutex mutex;
    std::vector<std::string> names;
  } counter;
  auto engine = Make();
  const Variable v = engine->NewVariable();
  engine->SetObserver(&counter);
  EXPECT_THAT(engine->Push([] {}, {.writes = {v}}, {.name = "one"}), IsOk());
  EXPECT_THAT(engine->Push([] {}, {.writes = {v}}, {.name = "two"}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  engine->SetObserver(nullptr);
  EXPECT_THAT(engine->Push([] {}, {.writes = {v}}, {.name = "three"}), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(counter.names, ElementsAre("one", "two"));
}

// From here on an operation is held back, which needs a thread for it.

TEST(Engine, WaitForVarDoesNotWaitForReadersAndWaitForWriteDoes) {
  auto engine = MakeEngine({.workers = 2});
  const Variable v = engine->NewVariable();
  Gate gate;
  ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.reads = {v}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(v), IsOk());
  EXPECT_THAT(engine->WaitForWrite(v, milliseconds(20)),
              FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  gate.Open();
  EXPECT_THAT(engine->WaitForWrite(v), IsOk());
  EXPECT_EQ(engine->Version(v), 0);
}

TEST(Engine, ATimeOutTellsTheChain) {
  auto engine = MakeEngine({.workers = 1});
  const Variable a = engine->NewVariable("A");
  const Variable b = engine->NewVariable("B");
  Gate gate;
  ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.writes = {a}}, {.name = "slow"}), IsOk());
  ASSERT_THAT(engine->Push([] {}, {.reads = {a}, .writes = {b}}, {.name = "next"}), IsOk());
  gate.AwaitArrival();
  const absl::Status status = engine->WaitForVar(b, milliseconds(20));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(status.message()),
      ::testing::MatchesRegex("variable 'B' is not ready after 0.020 s:\n"
                              "  variable 'B' is held by #[0-9.]+ 'next', which is blocked by 1\n"
                              "  variable 'A' is held by #[0-9.]+ 'slow', which is running"));
  EXPECT_THAT(engine->WaitForAll(milliseconds(1)),
              FailsWith(absl::StatusCode::kDeadlineExceeded, "2 operations"));
  // Nobody is left in the queues who has given up.
  EXPECT_THAT(engine->Describe(b), HasSubstr("1 granted, 0 waiting"));
  gate.Open();
  EXPECT_THAT(engine->WaitForVar(b), IsOk());
}

TEST(Engine, GivingUpLetsThoseBehindGoOn) {
  auto engine = MakeEngine({.workers = 2});
  const Variable v = engine->NewVariable();
  Gate gate;
  ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.reads = {v}}), IsOk());
  auto waiter =
      std::async(std::launch::async, [&] { return engine->WaitForWrite(v, milliseconds(50)); });
  while (engine->Describe(v).find("1 waiting") == std::string::npos) std::this_thread::yield();
  std::atomic<bool> read{false};
  ASSERT_THAT(engine->Push([&] { read = true; }, {.reads = {v}}), IsOk());
  EXPECT_THAT(waiter.get(), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  while (!read) std::this_thread::yield();
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
}

TEST(Engine, PrioritiesAndTheirOrder) {
  for (const PolicyKind policy : {PolicyKind::kPooled, PolicyKind::kPerDevice}) {
    auto engine = MakeEngine({.policy = policy, .workers = 1});
    Gate gate;
    ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {}), IsOk());
    gate.AwaitArrival();
    std::vector<int> order;
    for (int i = 0; i < 12; ++i) {
      const int priority = i % 3 - 1;
      ASSERT_THAT(engine->Push([&, i] { order.push_back(i); }, {}, {.priority = priority}), IsOk());
    }
    gate.Open();
    EXPECT_THAT(engine->WaitForAll(), IsOk());
    EXPECT_THAT(order, ElementsAre(2, 5, 8, 11, 1, 4, 7, 10, 0, 3, 6, 9));
  }
}

TEST(Engine, APushOfAnOperatorMayHaveItsOwnPriorityAndPlace) {
  auto engine = MakeEngine({});
  Gate gate;
  EXPECT_THAT(engine->Push([&] { gate.Pass(); }, {}), IsOk());
  gate.AwaitArrival();
  std::vector<int> order;
  std::vector<Operator> operators;
  for (int i = 0; i < 3; ++i) {
    operators.push_back(*engine->NewOperator([&order, i] { order.push_back(i); }, {}));
  }
  EXPECT_THAT(engine->Push(operators[0]), IsOk());
  EXPECT_THAT(engine->Push(operators[1], {.priority = -1}), IsOk());
  EXPECT_THAT(engine->Push(operators[2], {.priority = 1}), IsOk());
  EXPECT_THAT(engine->Push(operators[1]), IsOk());
  EXPECT_THAT(engine->Push(operators[0], {.place = Place{PlaceKind::kSim, 0}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "not among the engine's devices"));
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(order, ElementsAre(2, 0, 1, 1));
}

TEST(Engine, WhatBecomesReadyTogetherRunsInTheOrderOfPushes) {
  auto engine = MakeEngine({.workers = 1});
  const Variable v = engine->NewVariable();
  Gate gate;
  ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.writes = {v}}), IsOk());
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(engine->Push([&, i] { order.push_back(i); }, {.reads = {v}}), IsOk());
  }
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Engine, UrgentOperationsHaveThreadsOfTheirOwn) {
  auto engine = MakeEngine({.workers = 1, .urgent_workers = 1});
  Gate gate;
  ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {}), IsOk());
  const Variable v = engine->NewVariable();
  ASSERT_THAT(engine->Push([] {}, {.writes = {v}}, {.property = Property::kHostUrgent}), IsOk());
  EXPECT_THAT(engine->WaitForVar(v), IsOk());
  gate.Open();
}

TEST(Engine, AsyncAndDeleteRunOnThePusherWhenReady) {
  auto engine = MakeEngine({.workers = 1});
  const Variable v = engine->NewVariable();
  std::thread::id async_thread;
  ASSERT_THAT(engine->Push([&] { async_thread = std::this_thread::get_id(); }, {.writes = {v}},
                           {.property = Property::kAsync}),
              IsOk());
  EXPECT_EQ(async_thread, std::this_thread::get_id());
  Gate gate;
  ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.writes = {v}}), IsOk());
  ASSERT_THAT(engine->Push([&] { async_thread = std::this_thread::get_id(); }, {.writes = {v}},
                           {.property = Property::kAsync}),
              IsOk());
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_NE(async_thread, std::this_thread::get_id());
}

TEST(Engine, HoldsUpPushersBeyondTheBound) {
  for (const int64_t bound : {1, 2, 16}) {
    auto engine = MakeEngine({.workers = 2, .max_in_flight = bound});
    const Variable v = engine->NewVariable();
    Gate gate;
    ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.writes = {v}}), IsOk());
    gate.AwaitArrival();
    // Nothing ends before the gate opens, so each of them is held up sooner or later.
    constexpr int kPushers = 3;
    std::vector<std::thread> threads;
    for (int t = 0; t < kPushers; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) EXPECT_THAT(engine->Push([] {}, {.writes = {v}}), IsOk());
      });
    }
    while (engine->counters().held_up < kPushers) std::this_thread::yield();
    // Each pusher may be past the check when another one pushes.
    EXPECT_LE(engine->counters().pushed, bound + kPushers);
    EXPECT_EQ(engine->counters().completed, 0);
    gate.Open();
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(engine->WaitForAll(), IsOk());
    EXPECT_EQ(engine->counters().completed, kPushers * 100 + 1);
  }
}

TEST(Engine, AStoppedEngineHoldsUpNobody) {
  auto engine = MakeEngine({.max_in_flight = 2});
  ASSERT_THAT(engine->Stop(), IsOk());
  int runs = 0;
  const Variable v = engine->NewVariable();
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(engine->Push([&] { ++runs; }, {.writes = {v}}), IsOk());
  }
  engine->Start();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(runs, 10);
}

TEST(Engine, WaitsOnAStoppedEngineReturn) {
  auto engine = MakeEngine({.workers = 1});
  const Variable v = engine->NewVariable();
  ASSERT_THAT(engine->Stop(), IsOk());
  int runs = 0;
  ASSERT_THAT(engine->Push([&] { ++runs; }, {.writes = {v}}), IsOk());
  const auto stopped = FailsWith(absl::StatusCode::kFailedPrecondition, "stopped");
  EXPECT_THAT(engine->WaitForVar(v), stopped);
  EXPECT_THAT(engine->WaitForAll(), stopped);
  EXPECT_EQ(runs, 0);
  engine->Start();
  EXPECT_THAT(engine->WaitForVar(v), IsOk());
  EXPECT_EQ(runs, 1);
}

TEST(Engine, DescribesQueues) {
  auto engine = MakeEngine({.workers = 1});
  const Variable a = engine->NewVariable("A");
  const Variable b = engine->NewVariable("B");
  Gate gate;
  ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.reads = {a}, .writes = {b}}, {.name = "B=A+1"}),
              IsOk());
  gate.AwaitArrival();
  ASSERT_THAT(engine->Push([] {}, {.reads = {b}, .writes = {a}}, {.name = "A=B*2"}), IsOk());
  EXPECT_THAT(engine->Describe(a),
              ::testing::MatchesRegex("variable 'A': version 0, 1 granted, 1 waiting\n"
                                      "  #[0-9.]+ 'B=A\\+1' read, granted; running\n"
                                      "  #[0-9.]+ 'A=B\\*2' write, waiting; blocked by 2\n"));
  gate.Open();
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_EQ(engine->Describe(a), "variable 'A': version 1, 0 granted, 0 waiting\n");
}

TEST(Engine, CrossingVariablesFromManyThreadsDoNotDeadlock) {
  auto engine = MakeEngine({.workers = 2});
  const Variable a = engine->NewVariable();
  const Variable b = engine->NewVariable();
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  const int num_pushes = testing::SampleOf(2000, 20000);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < num_pushes; ++i) {
        const Variable from = t % 2 == 0 ? a : b;
        const Variable to = t % 2 == 0 ? b : a;
        EXPECT_THAT(engine->Push([&] { ++runs; }, {.reads = {from}, .writes = {to}}), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(engine->WaitForAll(std::chrono::minutes(2)), IsOk());
  EXPECT_EQ(runs, 4 * num_pushes);
}

TEST(Engine, CreateRefusesNonsense) {
  const auto invalid = FailsWith(absl::StatusCode::kInvalidArgument, "");
  EXPECT_THAT(Engine::Create({.workers = 0}), invalid);
  EXPECT_THAT(Engine::Create({.workers = 1 << 20}), invalid);
  EXPECT_THAT(Engine::Create({.max_in_flight = -1}), invalid);
  auto engine = MakeEngine({});
  EXPECT_THAT(engine->Push([] {}, {}, {.place = {PlaceKind::kSim, 3}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "sim:3"));
}

}  // namespace
}  // namespace interp::engine
