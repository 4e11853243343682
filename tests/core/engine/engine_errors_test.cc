// What becomes of errors: every one is kept, spoils what its operation writes, and comes out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>

#include "tests/testing/engines.h"

namespace interp::engine {
namespace {

using testing::FailsWith;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::MakeEngine;

constexpr auto kInternal = absl::StatusCode::kInternal;

class EngineErrors : public ::testing::TestWithParam<PolicyKind> {
 public:
  EngineErrors() : engine(MakeEngine({.policy = GetParam(), .workers = 2})) {}
  // An operation that fails.
  void Fail(const Accesses& accesses, const char* name = "bad") {
    ASSERT_THAT(
        engine->Push([] { return absl::InternalError("out of luck"); }, accesses, {.name = name}),
        IsOk());
  }
  std::unique_ptr<Engine> engine;
  Variable a = engine->NewVariable("a");
  Variable b = engine->NewVariable("b");
  Variable c = engine->NewVariable("c");
  bool ran = false;
};
INSTANTIATE_TEST_SUITE_P(Engine, EngineErrors,
                         ::testing::Values(PolicyKind::kNaive, PolicyKind::kPooled,
                                           PolicyKind::kPerDevice),
                         testing::NameOfPolicy);

TEST_P(EngineErrors, FlowToWhatIsWrittenAndToWhatReadsThat) {
  Fail({.reads = {c}, .writes = {a, b}});
  ASSERT_THAT(engine->Push([&] { ran = true; }, {.reads = {b}, .writes = {c}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), FailsWith(kInternal, "operation 'bad' (#"));
  // A sibling and a dependent, and again.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(engine->WaitForVar(b), FailsWith(kInternal, "out of luck"));
    EXPECT_THAT(engine->WaitForVar(c), FailsWith(kInternal, "out of luck"));
    EXPECT_THAT(engine->WaitForVar(a), FailsWith(kInternal, "out of luck"));
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(engine->counters().failed, 1);
  EXPECT_EQ(engine->counters().skipped, 1);
  EXPECT_THAT(engine->WaitForAll(), IsOk()) << "it has been told of";
  EXPECT_EQ(engine->Version(c), 1);
}

// Of the system, and no mistake of ours.
TEST_P(EngineErrors, WithoutMemoryAreOfTheSystem) {
  ASSERT_THAT(engine->Push([] { throw std::bad_alloc(); }, {.writes = {a}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a),
              FailsWith(absl::StatusCode::kResourceExhausted, "the system has no memory left"));
}

TEST_P(EngineErrors, OverwritingMakesGoodAndUpdatingDoesNot) {
  Fail({.writes = {a}});
  ASSERT_THAT(engine->Push([&] { ran = true; }, {.reads = {a}, .writes = {a}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), FailsWith(kInternal, "out of luck"));
  EXPECT_FALSE(ran);
  ASSERT_THAT(engine->Push([&] { ran = true; }, {.writes = {a}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), IsOk());
  EXPECT_TRUE(ran);
}

TEST_P(EngineErrors, AllOfThemComeOutAtWaitForAll) {
  Fail({.writes = {a}}, "first");
  Fail({.writes = {b}}, "second");
  Fail({.reads = {c}}, "without outputs");
  const absl::Status all = engine->WaitForAll();
  EXPECT_THAT(all, FailsWith(kInternal, "3 operations failed"));
  for (const char* name : {"'first'", "'second'", "'without outputs'"}) {
    EXPECT_THAT(all, FailsWith(kInternal, name));
  }
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), FailsWith(kInternal, "'first'")) << "it is spoilt still";
}

TEST_P(EngineErrors, WhateverIsThrown) {
  ASSERT_THAT(engine->Push([]() { throw std::runtime_error("ran away"); }, {.writes = {a}}),
              IsOk());
  ASSERT_THAT(engine->Push([]() { throw 42; }, {.writes = {b}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), FailsWith(kInternal, "ran away"));
  EXPECT_THAT(engine->WaitForVar(b), FailsWith(kInternal, "no std::exception"));
  ASSERT_THAT(engine->Push([]() { throw 43; }, {}), IsOk());
  while (engine->counters().completed < 3) std::this_thread::yield();
  const std::vector<ErrorRef> errors = engine->TakeErrors();
  ASSERT_EQ(errors.size(), 1);
  try {
    std::rethrow_exception(errors[0]->exception);
  } catch (int thrown) {
    EXPECT_EQ(thrown, 43);
  }
}

TEST_P(EngineErrors, NoSkipAndDeleteRunAnyway) {
  Fail({.writes = {a}});
  ASSERT_THAT(engine->Push([&] { ran = true; }, {.reads = {a}, .writes = {b}},
                           {.property = Property::kNoSkip}),
              IsOk());
  EXPECT_THAT(engine->WaitForVar(b), IsOk());
  EXPECT_TRUE(ran);
  bool deleted = false;
  EXPECT_THAT(engine->DeleteVariable(a, [&] { deleted = true; }), IsOk());
  EXPECT_THAT(engine->WaitForAll(), FailsWith(kInternal, "out of luck"));
  EXPECT_TRUE(deleted);
}

TEST_P(EngineErrors, ADeletedVariableLeavesNoErrorBehind) {
  for (int i = 0; i < 100; ++i) {
    const Variable v = engine->NewVariable();
    Fail({.writes = {v}});
    EXPECT_THAT(engine->DeleteVariable(v), IsOk());
  }
  EXPECT_THAT(engine->WaitForAll(), FailsWith(kInternal, "100 operations failed"));
  for (int i = 0; i < 200; ++i) EXPECT_THAT(engine->WaitForVar(engine->NewVariable()), IsOk());
}

TEST_P(EngineErrors, OfAsynchronousOperations) {
  std::thread other;
  ASSERT_THAT(engine->Push(
                  [&](Completion completion) {
                    other = std::thread([completion = std::move(completion)]() mutable {
                      EXPECT_THAT(completion.Done(absl::DataLossError("gone")), IsOk());
                    });
                  },
                  {.writes = {a}}),
              IsOk());
  ASSERT_THAT(engine->Push([](const Completion&) {}, {.writes = {b}}), IsOk());
  ASSERT_THAT(engine->Push([](Completion) { throw std::runtime_error("with it in hand"); },
                           {.writes = {c}}),
              IsOk());
  EXPECT_THAT(engine->WaitForVar(a), FailsWith(absl::StatusCode::kDataLoss, "gone"));
  EXPECT_THAT(engine->WaitForVar(b), FailsWith(kInternal, "its completion was dropped"));
  EXPECT_THAT(engine->WaitForVar(c), FailsWith(kInternal, "with it in hand"));
  // Only then has the function returned, too, which sets `other`.
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  other.join();
}

TEST_P(EngineErrors, ThrownAfterCompletionSpoilNothing) {
  ASSERT_THAT(engine->Push(
                  [](Completion completion) {
                    EXPECT_THAT(completion.Done(), IsOk());
                    throw std::runtime_error("too late");
                  },
                  {.writes = {a}}),
              IsOk());
  EXPECT_THAT(engine->WaitForVar(a), IsOk());
  EXPECT_THAT(engine->WaitForAll(), FailsWith(kInternal, "too late"));
}

TEST_P(EngineErrors, InsideWaitsTellOfThem) {
  Fail({.writes = {a}});
  absl::Status inside;
  ASSERT_THAT(engine->Push([&] { inside = engine->WaitForVar(a); }, {.writes = {b}}), IsOk());
  EXPECT_THAT(engine->WaitForVar(b), IsOk());
  EXPECT_THAT(inside, FailsWith(kInternal, "out of luck"));
}

TEST_P(EngineErrors, OperatorsRunAgainAfterwards) {
  int runs = 0;
  Operator op = *engine->NewOperator(
      [&] { return ++runs == 2 ? absl::InternalError("second time") : absl::OkStatus(); },
      {.reads = {}, .writes = {a}});
  for (int i = 0; i < 3; ++i) ASSERT_THAT(engine->Push(op), IsOk());
  EXPECT_THAT(engine->WaitForVar(a), IsOk());
  EXPECT_EQ(runs, 3);
  EXPECT_THAT(engine->WaitForAll(), FailsWith(kInternal, "second time"));
}

TEST_P(EngineErrors, AtDestructionAreDropped) {
  auto other = MakeEngine({.policy = GetParam()});
  const Variable v = other->NewVariable();
  ASSERT_THAT(other->Push([] { return absl::InternalError("unheard"); }, {.writes = {v}}), IsOk());
}

}  // namespace
}  // namespace interp::engine
