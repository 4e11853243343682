#include "interpreter/inspect/stall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/steady_clock.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe.h"
#include "tests/testing/probe_cores.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Reports as they come; a test waits for the first one.
class Reports {
 public:
  std::function<void(const std::string&)> Sink() {
    return [this](const std::string& report) {
      std::lock_guard<std::mutex> lock(mutex_);
      all_.push_back(report);
      come_.notify_all();
    };
  }
  void WaitForOne() {
    std::unique_lock<std::mutex> lock(mutex_);
    come_.wait(lock, [this] { return !all_.empty(); });
  }
  std::vector<std::string> all() {
    std::lock_guard<std::mutex> lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;  // guards all_
  std::condition_variable come_;
  std::vector<std::string> all_;
};

// x -> a -> b -> c, and a -> d beside it; tags 1 to 4. `side` more ops hang on d.
Program Branches(int side = 0) {
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {2})
      .Call("mix", {"x"}, "a", {{"tag", 1}})
      .Call("mix", {"a"}, "b", {{"tag", 2}})
      .Call("mix", {"b"}, "c", {{"tag", 3}})
      .Call("mix", {"a"}, "d", {{"tag", 4}});
  for (int i = 0; i < side; ++i) {
    const std::string name = absl::StrCat("e", i);
    builder.Call("mix", {"d"}, name, {{"tag", 5 + i}}).Fetch(name);
  }
  return builder.Fetch("c").Fetch("d").Build();
}

std::unique_ptr<InterpreterCore> MakeCore(const Program& program, SchedulerKind scheduler,
                                          int workers) {
  CoreOptions options = ProbeOptions(scheduler, workers);
  options.passes.disable = {"inplace"};
  return MakeProbeCore(program, nullptr, options);
}

Tensor X() { return Tensor::Of<int64_t>({2}, {1, 2}); }

TEST(StallWatchTest, NamesWhatRunsAndWhatWaitsForIt) {
  const auto core = MakeCore(Branches(), SchedulerKind::kTrace, 1);
  Reports reports;
  StallWatch watch(core->plans(),
                   {.after = std::chrono::milliseconds(20), .report = reports.Sink()});
  Probe probe;
  probe.SetHook([&](int32_t tag) {
    if (tag == 2) reports.WaitForOne();
  });
  ASSERT_THAT(core->Run({X()}, {.observer = &watch}), IsOk());
  ASSERT_EQ(reports.all().size(), 1u);
  const std::string report = reports.all()[0];
  EXPECT_THAT(report, StartsWith("no instruction has started or ended for "));
  EXPECT_THAT(report, HasSubstr(" ms: 2 of 7 done, 1 running, 4 waiting\n"));
  EXPECT_THAT(report, HasSubstr("running\n  op #2 mix -> b, worker 0, for "));
  EXPECT_THAT(report, HasSubstr("; 3 wait for it\n"));
  EXPECT_THAT(report, HasSubstr("ready, not started\n  op #4 mix -> d\n"));
  EXPECT_THAT(report, HasSubstr("waiting\n  op #3 mix -> c: for op #2 mix ("));
  EXPECT_THAT(report, HasSubstr(" b)\n"));
}

// Two workers are stuck; the one that more depends on comes first, lists are cut.
TEST(StallWatchTest, TheWorstBlockerComesFirstAndListsAreCut) {
  const auto core = MakeCore(Branches(/*side=*/8), SchedulerKind::kAsync, 2);
  Reports reports;
  StallWatch watch(
      core->plans(),
      {.after = std::chrono::milliseconds(50), .max_lines = 4, .report = reports.Sink()});
  Probe probe;
  probe.SetHook([&](int32_t tag) {
    if (tag == 2 || tag == 4) reports.WaitForOne();
  });
  ASSERT_THAT(core->Run({X()}, {.observer = &watch}), IsOk());
  ASSERT_THAT(reports.all(), Not(IsEmpty()));
  const std::string report = reports.all()[0];
  EXPECT_THAT(report, HasSubstr("running\n  op #4 mix -> d, worker "));
  EXPECT_THAT(report, HasSubstr("\n  op #2 mix -> b, worker "));
  EXPECT_THAT(report, HasSubstr("  and "));
}

TEST(StallWatchTest, AFastRunIsLeftAlone) {
  const auto core = MakeCore(Branches(), SchedulerKind::kTrace, 1);
  Reports reports;
  {
    StallWatch watch(core->plans(), {.after = std::chrono::minutes(10), .report = reports.Sink()});
    for (int i = 0; i < 10; ++i) ASSERT_THAT(core->Run({X()}, {.observer = &watch}), IsOk());
  }
  EXPECT_THAT(reports.all(), IsEmpty());
}

// The kernel that is stuck runs on a device: the host waits for its event.
TEST(StallWatchTest, ARunOnADeviceWaitsForAnEvent) {
  CoreOptions options = ProbeOptions();
  options.plan.place = {.kind = PlaceKind::kSim};
  const auto core = InterpreterCore::Create(Branches(), {}, {}, nullptr, options);
  ASSERT_THAT(core, IsOk());
  Reports reports;
  StallWatch watch((*core)->plans(),
                   {.after = std::chrono::milliseconds(50), .report = reports.Sink()});
  Probe probe;
  probe.SetHook([&](int32_t tag) {
    if (tag == 2) reports.WaitForOne();
  });
  ASSERT_THAT((*core)->Run({X()}, {.observer = &watch}), IsOk());
  ASSERT_THAT(reports.all(), Not(IsEmpty()));
  EXPECT_THAT(reports.all()[0], HasSubstr("waiting for a device\n"));
  EXPECT_THAT(reports.all()[0], HasSubstr(" on sim:0 d2h, for "));
}

// A stalled wait for a device, made up: the event's recorder is named, and its stream.
TEST(StallWatchTest, NamesTheEventThatTheHostWaitsFor) {
  absl::StatusOr<CompiledProgram> compiled = Compile(Branches(), {}, {}, {}, {}, ProbeOps());
  ASSERT_THAT(compiled, IsOk());
  Plan& plan = compiled->plans[0];
  const Place sim{.kind = PlaceKind::kSim};
  plan.streams = {{.name = "host"}, {.name = "d2h", .place = sim}};
  plan.instructions[1].place = sim;
  plan.instructions[1].stream = 1;
  plan.events = {{.recorder = 1}};
  Reports reports;
  StallWatch watch(compiled->plans,
                   {.after = std::chrono::milliseconds(20), .report = reports.Sink()});
  const int64_t now_ns = SteadyNowNs();
  watch.OnRunStart(now_ns);
  watch.OnWaitStart(2, /*event=*/0, /*worker=*/0, now_ns);
  watch.OnWaitStart(-1, /*event=*/-1, /*worker=*/0, now_ns);
  reports.WaitForOne();
  watch.OnRunEnd(SteadyNowNs());
  const std::string report = reports.all()[0];
  EXPECT_THAT(report, HasSubstr("waiting for a device\n  op #2 mix -> b, worker 0: for event 0, "
                                "recorded after op #1 mix -> a on sim:0 d2h, for "));
  EXPECT_THAT(report, HasSubstr("the end of the run, worker 0: for all work of the devices"));
}

}  // namespace
}  // namespace interp::testing
