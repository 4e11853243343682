#include "interpreter/inspect/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/testing/matchers.h"
#include "tests/testing/probe_cores.h"
#include "tests/testing/test_program.h"

namespace interp::testing::trace_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// x -> a -> b, c -> d: two branches that meet.
Program Diamond() {
  return TestProgram(DType::kInt64)
      .Feed("x", {-1, 4})
      .Call("mix", {"x"}, "a")
      .Call("mix", {"a"}, "b")
      .Call("mix", {"a"}, "c")
      .Call("mix", {"b", "c"}, "d")
      .Fetch("d")
      .Build();
}

Tensor X() { return Tensor::Of<int64_t>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}); }

json Parse(const RunTrace& trace, const InterpreterCore& core) {
  const std::string text = ToChromeTrace(trace, core);
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded()) << text;
  return parsed.at("traceEvents");
}

// What viewers rely on: every slice has a start and a length, slices of a thread nest, every arrow
// has both ends, and each end lies in a slice of its thread.
void CheckStructure(const json& events) {
  struct Slice {
    double start, end;
  };
  std::map<std::pair<int, int>, std::vector<Slice>> lanes;
  std::map<int, std::vector<json>> arrows;
  for (const json& event : events) {
    const std::string phase = event.at("ph");
    ASSERT_THAT((std::set<std::string>{"X", "M", "C", "s", "f"}), ::testing::Contains(phase));
    if (phase == "X") {
      ASSERT_GE(event.at("dur"), 0);
      const double start = event.at("ts");
      const double length = event.at("dur");
      lanes[{event.at("pid"), event.at("tid")}].push_back({start, start + length});
    } else if (phase == "s" || phase == "f") {
      arrows[event.at("id")].push_back(event);
    }
  }
  constexpr double kSlack = 1e-6;  // of adding microseconds
  for (const auto& [lane, slices] : lanes) {
    for (const Slice& a : slices) {
      for (const Slice& b : slices) {
        const bool overlap = a.start < b.start - kSlack && b.start + kSlack < a.end;
        EXPECT_TRUE(!overlap || b.end <= a.end + kSlack) << "slices cross";
      }
    }
  }
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0].at("ph"), "s");
    EXPECT_EQ(ends[1].at("ph"), "f");
    EXPECT_EQ(ends[0].at("name"), ends[1].at("name"));
    EXPECT_LE(ends[0].at("ts"), ends[1].at("ts"));
    for (const json& end : ends) {
      const double at = end.at("ts");
      const std::vector<Slice>& slices = lanes[{end.at("pid"), end.at("tid")}];
      EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
        return slice.start - kSlack <= at && at <= slice.end + kSlack;
      })) << end;
    }
  }
}

std::vector<json> Named(const json& events, const std::string& phase, const std::string& name) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("ph") == phase && event.at("name") == name) found.push_back(event);
  }
  return found;
}

TEST(TraceTest, HoldsEveryInstructionOnItsWorkerWithWhatItUsedAndFreed) {
  for (const auto& [kind, workers] :
       {std::pair(SchedulerKind::kTrace, 1), std::pair(SchedulerKind::kSerial, 1),
        std::pair(SchedulerKind::kAsync, 3), std::pair(SchedulerKind::kEngine, 2)}) {
    const auto core = MakeProbeCore(Diamond(), nullptr, ProbeOptions(kind, workers));
    TraceRecorder recorder(*core);
    ASSERT_THAT(core->Run({X()}, {.observer = &recorder}), IsOk());
    const json events = Parse(recorder.trace(), *core);
    CheckStructure(events);
    const std::vector<json> mixes = Named(events, "X", "mix");
    ASSERT_EQ(mixes.size(), 4u);
    EXPECT_EQ(mixes[3].at("args").at("inputs").at("X"), "b int64[2,4], c int64[2,4]");
    EXPECT_EQ(mixes[3].at("args").at("outputs").at("Out"), "d int64[2,4]");
    EXPECT_EQ(mixes[3].at("args").at("kernel"), "int64");
    EXPECT_EQ(mixes[3].at("args").at("op"), 4);
    std::set<std::string> freed;
    for (const json& event : events) {
      if (event.at("ph") != "X" || !event.at("args").contains("frees")) continue;
      for (const std::string name : event.at("args").at("frees")) {
        EXPECT_TRUE(freed.insert(name).second) << name;
      }
    }
    EXPECT_THAT(freed, ::testing::IsSupersetOf({"a int64[2,4]", "b int64[2,4]", "c int64[2,4]"}));
  }
}

TEST(TraceTest, TheCounterFollowsThePool) {
  const auto core = MakeProbeCore(Diamond());
  TraceRecorder recorder(*core);
  ASSERT_THAT(core->Run({X()}, {.observer = &recorder}), IsOk());
  const json events = Parse(recorder.trace(), *core);
  uint64_t most = 0;
  double last = -1;
  for (const json& sample : Named(events, "C", "memory in use")) {
    most = std::max(most, sample.at("args").at("host bytes").get<uint64_t>());
    EXPECT_LE(last, sample.at("ts"));
    last = sample.at("ts");
  }
  EXPECT_EQ(most, core->memory().peak_bytes);
}

// Bounded memory: the runs before leave nothing.
TEST(TraceTest, KeepsTheLastRunAlone) {
  const auto core = MakeProbeCore(Diamond());
  TraceRecorder recorder(*core);
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(core->Run({X()}, {.observer = &recorder}), IsOk());
  }
  EXPECT_EQ(Named(Parse(recorder.trace(), *core), "X", "mix").size(), 4u);
  for (const RunTrace::Execution& execution : recorder.trace().executions) {
    EXPECT_GE(execution.start_ns, recorder.trace().start_ns);
    EXPECT_LE(execution.end_ns, recorder.trace().end_ns);
  }
}

TEST(TraceTest, KeepsTheFirstWaitsAlone) {
  const auto core = MakeProbeCore(Diamond());
  TraceRecorder recorder(*core);
  recorder.OnRunStart(0);
  const int64_t most = kMaxNested;
  for (int64_t i = 0; i < most + 3; ++i) recorder.OnWaitEnd(0, 0, 0, i, i + 1);
  EXPECT_EQ(recorder.trace().waits.size(), kMaxNested);
  EXPECT_EQ(recorder.trace().num_waits, most + 3);
}

TEST(TraceTest, BeforeTheFirstRunItIsEmptyButValid) {
  const auto core = MakeProbeCore(Diamond());
  const TraceRecorder recorder(*core);
  EXPECT_THAT(Named(Parse(recorder.trace(), *core), "X", "mix"), IsEmpty());
}

// Arrows where an edge crosses workers and nowhere else. Times are made up.
TEST(TraceTest, ArrowsFollowEdgesAcrossWorkers) {
  const auto core = MakeProbeCore(Diamond());
  const Plan& plan = core->plan();
  RunTrace trace;
  trace.executions.resize(plan.instructions.size());
  trace.freed_after.resize(plan.vars.size(), -1);
  for (size_t i = 0; i < trace.executions.size(); ++i) {
    const auto start_ns = static_cast<int64_t>(i) * 1000;
    trace.executions[i] = {.worker = 0, .start_ns = start_ns, .end_ns = start_ns + 900};
  }
  const InstrId c = 3;  // feed, a, b, c, d, fetch
  trace.executions[c].worker = 1;
  const json events = Parse(trace, *core);
  CheckStructure(events);
  std::vector<std::string> names;
  for (const json& event : events) {
    if (event.at("ph") == "s") names.push_back(event.at("name"));
  }
  EXPECT_THAT(names, ElementsAre(HasSubstr("a"), HasSubstr("c")));
}

// Work on two streams of a simulated device, and a wait of the host.
TEST(TraceTest, DevicesHaveAProcessWithAThreadPerStream) {
  const auto core = MakeProbeCore(Diamond());
  CompiledProgram compiled = *Compile(Diamond(), {}, {}, {}, {}, ProbeOps());
  Plan& plan = compiled.plans[0];
  const Place sim{.kind = PlaceKind::kSim};
  plan.streams = {
      {.name = "host"}, {.name = "compute", .place = sim}, {.name = "d2h", .place = sim}};
  plan.instructions[1].stream = 1;
  plan.instructions[2].stream = 2;
  plan.events = {{.recorder = 2}};
  RunTrace trace;
  trace.executions.resize(plan.instructions.size());
  trace.freed_after.resize(plan.vars.size(), -1);
  trace.waits = {{.instruction = 4, .event = 0, .worker = 0, .start_ns = 100, .end_ns = 700},
                 {.instruction = -1, .event = -1, .worker = 0, .start_ns = 800, .end_ns = 900}};
  const auto span = [](int stream, int tag, int64_t start_ns, int64_t end_ns) {
    return DeviceSpan{
        .stream = stream, .tag = tag, .start_ns = start_ns, .end_ns = end_ns, .bytes = 64};
  };
  trace.devices = {{.place = sim, .spans = {span(0, 1, 0, 500), span(3, 2, 510, 600)}}};
  const json events = json::parse(ToChromeTrace(trace, compiled.plans, [](int32_t) {
                        return absl::Span<Variable* const>();
                      })).at("traceEvents");
  CheckStructure(events);
  std::vector<std::string> names;
  for (const json& event : events) {
    if (event.at("ph") == "M") names.push_back(event.at("args").at("name"));
  }
  EXPECT_THAT(names, ElementsAre("host", "worker 0", "sim:0 (simulated time)", "compute", "d2h"));
  ASSERT_EQ(Named(events, "X", "mix").size(), 2u);
  EXPECT_EQ(Named(events, "X", "mix")[1].at("ts"), 0.51);
  EXPECT_EQ(Named(events, "X", "wait for op #2 mix").size(), 1u);
  EXPECT_EQ(Named(events, "X", "wait for devices").size(), 1u);
  EXPECT_EQ(Named(events, "s", "RAW a").size() + Named(events, "s", "raw a").size(), 1u);
}

// The same by a run: every instruction of the device has a launch and a span, and the copy in is
// before what needs it.
TEST(TraceTest, RunsOnADeviceShowLaunchesSpansAndWaits) {
  for (const auto& [kind, workers] :
       {std::pair(SchedulerKind::kTrace, 1), std::pair(SchedulerKind::kAsync, 2)}) {
    CoreOptions options = ProbeOptions(kind, workers);
    options.plan.place = {.kind = PlaceKind::kSim};
    const auto core = InterpreterCore::Create(Diamond(), {}, {}, nullptr, options);
    ASSERT_THAT(core, IsOk());
    TraceRecorder recorder(**core);
    ASSERT_THAT((*core)->Run({X()}, {.observer = &recorder}), IsOk());
    const json events = Parse(recorder.trace(), **core);
    CheckStructure(events);
    EXPECT_EQ(Named(events, "X", "launch mix").size(), 4u);
    EXPECT_EQ(Named(events, "X", "mix").size(), 4u);
    EXPECT_EQ(Named(events, "X", "wait for devices").size(), 1u);
    ASSERT_EQ(Named(events, "X", "memcpy_h2d").size(), 1u);
    const json copy = Named(events, "X", "memcpy_h2d")[0];
    const json first = Named(events, "X", "mix")[0];
    EXPECT_NE(copy.at("tid"), first.at("tid"));
    EXPECT_LE(copy.at("ts").get<double>() + copy.at("dur").get<double>(),
              first.at("ts").get<double>() + 1e-6);
    uint64_t most = 0;
    for (const json& sample : Named(events, "C", "memory in use")) {
      most = std::max(most, sample.at("args").at("device bytes").get<uint64_t>());
    }
    EXPECT_GT(most, 0u);
    EXPECT_LE(most, (*core)->device_memory().peak_bytes);
  }
}

}  // namespace
}  // namespace interp::testing::trace_test
