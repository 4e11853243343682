// Groups of recorded operations, and queues of the user's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "core/engine/engine.h"
#include "tests/testing/devices.h"
#include "tests/testing/engines.h"
#include "tests/testing/matchers.h"

namespace interp::engine::groups_test {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;
using testing::MakeEngine;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class EngineGroups : public ::testing::TestWithParam<PolicyKind> {
 protected:
  const std::unique_ptr<Engine> engine_ = MakeEngine({.policy = GetParam(), .queues = {"mine"}});
  const Variable a_ = engine_->NewVariable("A");
  const Variable b_ = engine_->NewVariable("B");
  const Variable c_ = engine_->NewVariable("C");
};
INSTANTIATE_TEST_SUITE_P(Engine, EngineGroups,
                         ::testing::Values(PolicyKind::kNaive, PolicyKind::kPooled,
                                           PolicyKind::kPerDevice),
                         testing::NameOfPolicy);

TEST_P(EngineGroups, RunTheirMembersInOrderAsOneOperation) {
  std::vector<int> order;
  const auto member = [&](int number, const Accesses& accesses) {
    return *engine_->NewOperator([&order, number] { order.push_back(number); }, accesses);
  };
  std::vector<Operator> members = {member(1, {.writes = {&a_, 1}}),
                                   member(2, {.reads = {&a_, 1}, .writes = {&b_, 1}}),
                                   member(3, {.updates = {&a_, 1}})};
  auto group = engine_->NewGroup(members, {.name = "group"});
  ASSERT_THAT(group, IsOk());
  members.clear();  // the group keeps them
  const uint64_t before = engine_->counters().pushed;
  for (int times = 0; times < 2; ++times) ASSERT_THAT(engine_->Push(*group), IsOk());
  EXPECT_EQ(engine_->counters().pushed, before + 2);
  EXPECT_THAT(engine_->WaitForAll(), IsOk());
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_EQ(engine_->Version(a_), 2U);
  EXPECT_EQ(engine_->Version(b_), 2U);
}

TEST_P(EngineGroups, AnErrorOfOneEndsThemAndSpoilsWhatTheyWrite) {
  bool last = false;
  const auto fails =
      engine_->NewOperator([] { return InvalidArgument("no such luck"); }, {.writes = {&b_, 1}});
  const auto before = engine_->NewOperator([] {}, {.writes = {&a_, 1}});
  const auto behind = engine_->NewOperator([&] { last = true; }, {.writes = {&c_, 1}});
  const auto group = engine_->NewGroup({*before, *fails, *behind});
  ASSERT_THAT(group, IsOk());
  ASSERT_THAT(engine_->Push(*group), IsOk());
  for (const Variable variable : {a_, b_, c_}) {
    EXPECT_THAT(engine_->WaitForVar(variable), FailsWith(kInvalid, "no such luck"));
  }
  EXPECT_FALSE(last);
}

// What the group writes first is overwritten, what it reads first is not.
TEST_P(EngineGroups, OverwriteWhatTheyDoNotReadBefore) {
  const auto spoil = [&](Variable variable) {
    return engine_->Push([] { return InvalidArgument("spoilt"); }, {.writes = {&variable, 1}});
  };
  const auto write = engine_->NewOperator([] {}, {.writes = {&a_, 1}});
  const auto read = engine_->NewOperator([] {}, {.reads = {&a_, 1}, .writes = {&b_, 1}});
  const auto overwriting = engine_->NewGroup({*write, *read});
  const auto updating = engine_->NewGroup({*read, *write});
  ASSERT_THAT(overwriting, IsOk());
  ASSERT_THAT(updating, IsOk());
  ASSERT_THAT(spoil(a_), IsOk());
  ASSERT_THAT(engine_->Push(*updating), IsOk());
  EXPECT_THAT(engine_->WaitForVar(a_), FailsWith(kInvalid, "spoilt"));
  ASSERT_THAT(engine_->Push(*overwriting), IsOk());
  EXPECT_THAT(engine_->WaitForVar(a_), IsOk());
  EXPECT_THAT(engine_->WaitForVar(b_), IsOk());
}

TEST_P(EngineGroups, WhatCannotBeAGroupIsRefused) {
  EXPECT_THAT(engine_->NewGroup({}, {.name = "none"}), FailsWith(kInvalid, "'none' has no"));
  EXPECT_THAT(engine_->NewGroup({Operator()}), FailsWith(kInvalid, "is no operator"));
  const auto async = engine_->NewOperator([](Completion done) { static_cast<void>(done.Done()); },
                                          {.writes = {&a_, 1}}, {.name = "later"});
  EXPECT_THAT(engine_->NewGroup({*async}), FailsWith(kInvalid, "'later' is asynchronous"));
  const auto other = MakeEngine({});
  const auto theirs = other->NewOperator([] {}, {}, {.name = "theirs"});
  EXPECT_THAT(engine_->NewGroup({*theirs}), FailsWith(kInvalid, "'theirs' is another engine's"));
  const auto ours = engine_->NewOperator([] {}, {.writes = {&a_, 1}});
  ASSERT_THAT(engine_->DeleteVariable(a_), IsOk());
  const auto stale = engine_->NewGroup({*ours});
  ASSERT_THAT(stale, IsOk());
  EXPECT_THAT(engine_->Push(*stale), FailsWith(kInvalid, "deleted"));
}

TEST_P(EngineGroups, MembersWithVariablesThatAreGoneDoNotHideBehindTheirSuccessors) {
  bool ran = false;
  const auto stale = engine_->NewOperator([&] { ran = true; }, {.writes = {&a_, 1}});
  ASSERT_THAT(engine_->DeleteVariable(a_), IsOk());
  ASSERT_THAT(engine_->WaitForAll(), IsOk());
  // The next variables take the place of those that are gone.
  std::vector<Variable> others;
  for (int i = 0; i < 1000 && (others.empty() || others.back().var != a_.var); ++i) {
    others.push_back(engine_->NewVariable());
  }
  ASSERT_EQ(others.back().var, a_.var);
  const auto valid = engine_->NewOperator([] {}, {.writes = {&others.back(), 1}});
  for (const auto& members : {std::vector{*valid, *stale}, std::vector{*stale, *valid}}) {
    const auto group = engine_->NewGroup(members);
    ASSERT_THAT(group, IsOk());
    EXPECT_THAT(engine_->Push(*group), FailsWith(kInvalid, "deleted"));
  }
  EXPECT_FALSE(ran);
}

TEST_P(EngineGroups, MembersRunWhereTheirGroupDoes) {
  const auto device = testing::MakeDevice({});
  const auto engine =
      MakeEngine({.policy = GetParam(), .devices = {device}, .queues = {"mine", "other"}});
  const auto on_device =
      engine->NewOperator([](const RunContext& ctx) { return ctx.stream->Synchronize(); }, {},
                          {.name = "there", .place = device->place()});
  const auto queued = engine->NewOperator([] {}, {}, {.name = "queued", .queue = 1});
  const auto anywhere = engine->NewOperator([] {}, {});
  EXPECT_THAT(engine->NewGroup({*on_device}, {.name = "group"}),
              FailsWith(kInvalid, "group 'group' is to run on cpu: 'there' on sim:0"));
  EXPECT_THAT(engine->NewGroup({*queued}),
              FailsWith(kInvalid, "is to run in no queue of the user: 'queued' in queue 1"));
  EXPECT_THAT(engine->NewGroup({*queued}, {.queue = 0}),
              FailsWith(kInvalid, "is to run in queue 0: 'queued' in queue 1"));
  EXPECT_THAT(engine->NewGroup({*queued, *anywhere}, {.queue = 1}), IsOk());
  const auto there = engine->NewGroup({*on_device, *anywhere}, {.place = device->place()});
  ASSERT_THAT(there, IsOk());
  EXPECT_THAT(engine->Push(*there), IsOk());
  EXPECT_THAT(engine->WaitForAll(), IsOk());
}

TEST_P(EngineGroups, OwnQueuesHaveOneThreadForAllThatIsTheirs) {
  std::set<std::thread::id> threads;
  for (int i = 0; i < 20; ++i) {
    const Variable variable = engine_->NewVariable();
    ASSERT_THAT(engine_->Push([&] { threads.insert(std::this_thread::get_id()); },
                              {.writes = {&variable, 1}}, {.queue = 0}),
                IsOk());
    ASSERT_THAT(engine_->Push(
                    [&](Completion done) {
                      threads.insert(std::this_thread::get_id());
                      static_cast<void>(done.Done());
                    },
                    {.writes = {&variable, 1}}, {.property = Property::kAsync, .queue = 0}),
                IsOk());
  }
  ASSERT_THAT(engine_->WaitForAll(), IsOk());
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_P(EngineGroups, OperationsOfOwnQueuesFollowAndPrecedeOthers) {
  std::vector<int> order;
  const auto push = [&](int number, int16_t queue) {
    return engine_->Push([&order, number] { order.push_back(number); }, {.updates = {&a_, 1}},
                         {.queue = queue});
  };
  for (int i = 0; i < 10; ++i) ASSERT_THAT(push(i, i % 2 == 0 ? 0 : -1), IsOk());
  ASSERT_THAT(engine_->WaitForAll(), IsOk());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_P(EngineGroups, WaitsWithinOwnQueuesAreErrors) {
  absl::Status waited;
  ASSERT_THAT(
      engine_->Push([&] { waited = engine_->WaitForVar(b_); }, {.writes = {&a_, 1}}, {.queue = 0}),
      IsOk());
  // Until this is pushed B is readable, and the wait none.
  ASSERT_THAT(engine_->WaitForAll(), IsOk());
  EXPECT_THAT(waited, IsOk());
  ASSERT_THAT(engine_->Push(
                  [&] {
                    static_cast<void>(engine_->Push([] {}, {.writes = {&b_, 1}}, {.queue = 0}));
                    waited = engine_->WaitForVar(b_);
                  },
                  {.writes = {&a_, 1}}, {.queue = 0}),
              IsOk());
  ASSERT_THAT(engine_->WaitForAll(), IsOk());
  EXPECT_THAT(waited, FailsWith(absl::StatusCode::kFailedPrecondition, "of queue 'mine'"));
}

// Pushed before they are ready, operations come to the queues by another way.
TEST_P(EngineGroups, EveryQueueKeepsItsThreadForWhatWaits) {
  EngineOptions options;
  options.policy = GetParam();
  options.queues.resize(kMaxQueues);
  const auto engine = MakeEngine(options);
  const Variable held = engine->NewVariable();
  for (const int queue : {126, 255}) {
    const OperationOptions there{.queue = static_cast<int16_t>(queue)};
    std::thread::id expected;
    std::thread::id thread;
    int expected_worker = -1;
    int worker = -1;
    const auto note = [](std::thread::id& id, int& number) {
      return [&id, &number](const RunContext& ctx) {
        id = std::this_thread::get_id();
        number = ctx.worker;
      };
    };
    ASSERT_THAT(engine->Push(note(expected, expected_worker), {}, there), IsOk());
    testing::Gate gate;
    ASSERT_THAT(engine->Push([&] { gate.Pass(); }, {.writes = {&held, 1}}, {.queue = 0}), IsOk());
    gate.AwaitArrival();
    ASSERT_THAT(engine->Push(note(thread, worker), {.reads = {&held, 1}}, there), IsOk());
    gate.Open();
    ASSERT_THAT(engine->WaitForAll(), IsOk());
    EXPECT_EQ(thread, expected) << "queue " << queue;
    EXPECT_EQ(worker, expected_worker);
  }
}

TEST_P(EngineGroups, QueuesThatAreNotThereAreRefused) {
  EXPECT_THAT(engine_->Push([] {}, {.writes = {&a_, 1}}, {.name = "lost", .queue = 1}),
              FailsWith(kInvalid,
                        "'lost' is to run on cpu in queue 1, expected the host and one "
                        "of the 1 queues"));
  EngineOptions many;
  many.queues.resize(kMaxQueues + 1);
  EXPECT_THAT(Engine::Create(many), FailsWith(kInvalid, "257 queues"));
}

}  // namespace
}  // namespace interp::engine::groups_test
