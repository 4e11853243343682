// Random numbers and workspaces as a core gives them to kernels. That every scheduler, place and
// plan option draws the same numbers is checked by all differential tests, whose programs hold
// random ops; here is what they leave out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "interpreter/executor.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/program_text.h"

namespace interp::testing::random_state_test {
namespace {

constexpr char kTwoDraws[] = R"(block 0
  var a int64[4]
  var b int64[4]
  random() -> (Out=a) {dtype=3, shape=[4]}
  random() -> (Out=b) {dtype=3, shape=[4]}
)";

CoreOptions Options(uint64_t seed = 0) {
  CoreOptions options;
  options.ops = &ProbeOps();
  options.random_seed = seed;
  return options;
}

std::unique_ptr<InterpreterCore> MakeCore(absl::string_view text,
                                          const std::vector<std::string>& fetches,
                                          const CoreOptions& options) {
  auto core = InterpreterCore::Create(Parse(text), {}, fetches, nullptr, options);
  EXPECT_THAT(core, IsOk());
  return *std::move(core);
}

// What `fetches` hold after one run, end to end.
std::vector<int64_t> Draw(InterpreterCore& core, const RunOptions& options = {}) {
  const auto fetched = core.Run({}, options);
  EXPECT_THAT(fetched, IsOk());
  std::vector<int64_t> all;
  for (const Tensor& tensor : *fetched) {
    for (const int64_t value : Values<int64_t>(tensor)) all.push_back(value);
  }
  return all;
}

TEST(RandomStateTest, OpsStepsAndSeedsDrawDifferentNumbers) {
  std::set<int64_t> seen;
  for (const uint64_t seed : {0, 1, 2}) {
    const auto core = MakeCore(kTwoDraws, {"a", "b"}, Options(seed));
    for (int step = 0; step < 5; ++step) {
      for (const int64_t value : Draw(*core)) seen.insert(value);
    }
  }
  EXPECT_EQ(seen.size(), 3u * 5u * 8u);
}

TEST(RandomStateTest, TheSameSeedDrawsTheSameNumbers) {
  const auto one = MakeCore(kTwoDraws, {"a", "b"}, Options(5));
  const auto other = MakeCore(kTwoDraws, {"a", "b"}, Options(5));
  for (int step = 0; step < 3; ++step) EXPECT_EQ(Draw(*one), Draw(*other));
}

TEST(RandomStateTest, ASavedStateGoesOnWhereItWas) {
  const auto core = MakeCore(kTwoDraws, {"a", "b"}, Options(5));
  Draw(*core);
  Draw(*core);
  const RandomState saved = core->random_state();
  EXPECT_EQ(saved, (RandomState{.seed = 5, .stream = 0, .step = 2}));
  const std::vector<int64_t> third = Draw(*core);
  Draw(*core);
  core->SetRandomState(saved);
  EXPECT_EQ(Draw(*core), third);
  const auto later = MakeCore(kTwoDraws, {"a", "b"}, Options());
  later->SetRandomState(saved);
  EXPECT_EQ(Draw(*later), third);
}

TEST(RandomStateTest, ARunMayBringAStateOfItsOwn) {
  const auto core = MakeCore(kTwoDraws, {"a", "b"}, Options(5));
  const std::vector<int64_t> first = Draw(*core);
  Draw(*core);
  EXPECT_EQ(Draw(*core, {.random = RandomState{.seed = 5}}), first);
  EXPECT_EQ(core->random_state().step, 2u);
}

TEST(RandomStateTest, ClonesDrawFromStreamsOfTheirOwn) {
  const auto core = MakeCore(kTwoDraws, {"a"}, Options(5));
  Draw(*core);
  const auto first = core->Clone();
  const auto second = first->Clone();
  EXPECT_EQ(first->random_state(), (RandomState{.seed = 5, .stream = 1, .step = 0}));
  EXPECT_EQ(second->random_state(), (RandomState{.seed = 5, .stream = 2, .step = 0}));
  const std::vector<int64_t> drawn = Draw(*first);
  EXPECT_NE(drawn, Draw(*second));
  core->SetRandomState(RandomState{.seed = 5, .stream = 1});
  EXPECT_EQ(Draw(*core), drawn);
}

TEST(RandomStateTest, NumbersDoNotDependOnWhatElseIsFetched) {
  const auto both = MakeCore(kTwoDraws, {"a", "b"}, Options());
  const auto last = MakeCore(kTwoDraws, {"b"}, Options());
  ASSERT_EQ(last->plan().instructions.size(), 2u);  // the first draw is pruned
  const std::vector<int64_t> all = Draw(*both);
  EXPECT_EQ(Draw(*last), std::vector<int64_t>(all.begin() + 4, all.end()));
}

// The first draw is dead, so it is pruned; the second keeps its numbers.
TEST(RandomStateTest, WritersOfOneNameAreToldApart) {
  constexpr char kTwice[] = R"(block 0
  var a int64[4]
  random() -> (Out=a) {dtype=3, shape=[4]}
  random() -> (Out=a) {dtype=3, shape=[4]}
)";
  CoreOptions unpruned = Options();
  unpruned.passes.disable = {"prune"};
  const auto whole = MakeCore(kTwice, {"a"}, unpruned);
  const auto pruned = MakeCore(kTwice, {"a"}, Options());
  EXPECT_EQ(Draw(*pruned), Draw(*whole));
  const auto first = MakeCore(kTwoDraws, {"a"}, Options());
  pruned->SetRandomState({});
  EXPECT_NE(Draw(*pruned), Draw(*first));
}

// Launches of several runs are in flight at once: each has the step of its run.
TEST(RandomStateTest, LaunchesTakeTheirStepAlong) {
  const auto host = MakeCore(kTwoDraws, {"a", "b"}, Options(9));
  for (const auto execution :
       {SimOptions::Execution::kThreads, SimOptions::Execution::kInterleaved}) {
    CoreOptions options = Options(9);
    options.plan.place = {PlaceKind::kSim, 0};
    options.sim.execution = execution;
    options.sim.max_kernel_delay_ns = 200'000;
    const auto device = MakeCore(kTwoDraws, {"a", "b"}, options);
    host->SetRandomState({.seed = 9});
    for (int step = 0; step < 6; ++step) {
      EXPECT_EQ(Draw(*device, {.wait_for_devices = false}), Draw(*host)) << step;
    }
    EXPECT_THAT(device->Synchronize(), IsOk());
  }
}

TEST(RandomStateTest, WorkspaceCountsAsMemoryOfTheRun) {
  constexpr char kScratch[] = R"(block 0
  var a int64[4]
  scratch() -> (Out=a) {dtype=3, shape=[4]}
)";
  CoreOptions options = Options();
  options.max_memory_bytes = 64;  // for the output, and nothing else
  const auto core = MakeCore(kScratch, {"a"}, options);
  EXPECT_THAT(core->Run({}), FailsWith(absl::StatusCode::kResourceExhausted, ""));
  const auto roomy = MakeCore(kScratch, {"a"}, Options());
  EXPECT_EQ(Draw(*roomy), Draw(*MakeCore(kTwoDraws, {"a"}, Options())));
  EXPECT_EQ(roomy->memory().peak_bytes, 128u);
  EXPECT_EQ(roomy->memory().current_bytes, 0u);
  EXPECT_GT(roomy->TrimMemory(), 0u);
}

TEST(ExecutorRandomTest, StepsGoOnOverAllPrograms) {
  ExecutorOptions options{.core = Options(3), .capacity = 1};
  Executor executor(options);
  const Program one = Parse(kTwoDraws);
  const Program other = Parse(R"(block 0
  var a int64[4]
  random() -> (Out=a) {dtype=3, shape=[4]}
)");
  const auto scope = std::make_shared<Scope>();
  std::set<int64_t> seen;
  std::vector<int64_t> last;
  for (int round = 0; round < 3; ++round) {
    for (const Program* program : {&one, &other}) {
      const auto fetched = executor.Run(*program, {}, {"a"}, scope);
      ASSERT_THAT(fetched, IsOk());
      last = Values<int64_t>((*fetched)[0]);
      seen.insert(last.begin(), last.end());
    }
  }
  EXPECT_GT(executor.stats().evictions, 0);
  EXPECT_EQ(seen.size(), 3u * 2u * 4u);
  EXPECT_EQ(executor.random_state(), (RandomState{.seed = 3, .stream = 0, .step = 6}));
  executor.SetRandomState({.seed = 3, .step = 5});
  const auto again = executor.Run(one, {}, {"a"}, scope);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(Values<int64_t>((*again)[0]), last);
}

}  // namespace
}  // namespace interp::testing::random_state_test
