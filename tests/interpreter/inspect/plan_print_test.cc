// Runs the cases of tests/interpreter/inspect/*.txt: a program in, a dump of its plan out. The form
// of the files is in tests/testing/text_cases.h. Keys: `stage` (deps or plan); `format` (text, json
// or dot; text without it); `options` (sequential, no_gc, plain), may be left out.
#include "interpreter/inspect/plan_print.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/program_parse.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/text_cases.h"

namespace interp::testing {
namespace {

bool Has(const TextCase& c, absl::string_view key, const std::string& value) {
  const auto values = c.Values(key).value_or(std::vector<std::string>());
  return std::find(values.begin(), values.end(), value) != values.end();
}

absl::StatusOr<std::string> RunCase(const TextCase& c) {
  const PlanOptions options{.sequential = Has(c, "options", "sequential"),
                            .garbage_collection = !Has(c, "options", "no_gc"),
                            .optimize_layout = !Has(c, "options", "plain")};
  INTERP_ASSIGN_OR_RETURN(const Plan plan, PlanOf(c.in, options));
  const PlanFormat format = Has(c, "format", "json")  ? PlanFormat::kJson
                            : Has(c, "format", "dot") ? PlanFormat::kDot
                                                      : PlanFormat::kText;
  return PrintPlan(plan, Has(c, "stage", "deps") ? PlanStage::kDeps : PlanStage::kPlan, format);
}

class PlanGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PlanGoldenTest, Matches) { CheckTextCases(GetParam(), RunCase); }

INSTANTIATE_TEST_SUITE_P(Files, PlanGoldenTest,
                         ::testing::ValuesIn(TextCaseFiles("tests/interpreter/inspect")),
                         [](const auto& info) { return TextCaseName(info.param); });

TEST(PlanPrintTest, JsonIsValidForAnyNames) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var "a \"quoted\" name" int64[2]
  mix(X="a \"quoted\" name") -> (Out="bad \xff utf8")
)");
  ASSERT_THAT(plan, IsOk());
  for (const PlanStage stage : {PlanStage::kDeps, PlanStage::kPlan}) {
    const auto json = nlohmann::json::parse(PrintPlan(*plan, stage, PlanFormat::kJson));
    EXPECT_EQ(json["instructions"][0]["outputs"]["Out"][0], "bad \uFFFD utf8");
  }
}

// x is copied to the device, relu'd there on another stream, and copied back in the run after.
absl::StatusOr<Plan> DevicePlan() {
  INTERP_ASSIGN_OR_RETURN(Plan plan, PlanOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
  mix(X=b) -> (Out=c)
)"));
  const Place sim{PlaceKind::kSim, 0};
  plan.streams = {{"host"}, {"h2d", sim, -1}, {"compute", sim, 0}};
  plan.events = {{0}, {1}};
  plan.fallbacks = {"unique"};
  for (const InstrId i : {0, 1}) {
    plan.instructions[i].place = sim;
    plan.instructions[i].stream = i + 1;
    plan.instructions[i].queue = QueueKind::kDevice;
    plan.instructions[i].record = i;
    plan.vars[plan.instructions[i].outputs[0]].place = sim;
    plan.edges[i].run_type = RunType::kEvent;
  }
  plan.edges[1].memory = false;
  plan.instructions[1].waits = {{0}};
  plan.instructions[2].waits = {{0, false, true}, {1, true, true}};
  return plan;
}

TEST(PlanPrintTest, TextTellsPlacesStreamsAndEvents) {
  const absl::StatusOr<Plan> plan = DevicePlan();
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(PrintPlan(*plan, PlanStage::kDeps, PlanFormat::kText),
            R"(deps instructions=3 edges=2 shrunk=0
  #0 mix(X=[x]) -> (Out=a) op=0
  #1 mix(X=[a]) -> (Out=b) op=1
     after #0 raw a run=event
  #2 mix(X=[b]) -> (Out=c) op=2
     after #1 raw b issued run=event
)");
  EXPECT_EQ(PrintPlan(*plan, PlanStage::kPlan, PlanFormat::kText),
            R"(plan instructions=3 edges=2 width=1 critical_path=3
  fallback unique
  stream 0 host cpu priority=0
  stream 1 h2d sim:0 priority=-1
  stream 2 compute sim:0 priority=0
  event 0 of #0
  event 1 of #1
  var x int64 rank=1 refs=1
  var a int64 undeclared place=sim:0 refs=1
  var b int64 undeclared place=sim:0 refs=1
  var c int64 undeclared refs=1
  #0 mix(X=[x]) -> (Out=a) op=0
     kernel=int64 place=sim:0 queue=device stream=1 priority=0
     waits=0 then=[1] counts=[x] frees=[x]
     record=0
  #1 mix(X=[a]) -> (Out=b) op=1
     kernel=int64 place=sim:0 queue=device stream=2 priority=0
     waits=1 then=[2] counts=[a] frees=[a]
     after_events=[0] record=1
  #2 mix(X=[b]) -> (Out=c) op=2
     kernel=int64 queue=host stream=0 priority=0
     waits=1 then=[] counts=[b, c] frees=[b, c]
     after_events=[0 blocks_host, 1 previous_run blocks_host]
  order 0 1 2
)");
}

TEST(PlanPrintTest, DotGroupsStreamsAndDrawsEvents) {
  const absl::StatusOr<Plan> plan = DevicePlan();
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(PrintPlan(*plan, PlanStage::kPlan, PlanFormat::kDot), R"(digraph plan {
  i0 [shape=box, label="0: #0 mix int64"]
  i1 [shape=box, label="1: #1 mix int64"]
  i2 [shape=box, label="2: #2 mix int64"]
  i0 -> i1 [label="raw a sim:0, event"]
  i1 -> i2 [label="raw b sim:0, issued, event"]
  subgraph cluster_0 {label="host cpu"; i2}
  subgraph cluster_1 {label="h2d sim:0"; i0}
  subgraph cluster_2 {label="compute sim:0"; i1}
  i0 -> i1 [label="event 0", color=blue, style=bold, constraint=false]
  i0 -> i2 [label="event 0", color=blue, style=bold, constraint=false]
  i1 -> i2 [label="event 1 of the run before", color=blue, style=bold, constraint=false]
}
)");
}

TEST(PlanPrintTest, JsonCarriesDevicesAndWithItsProgramAttributesAndDims) {
  const absl::StatusOr<Plan> plan = DevicePlan();
  ASSERT_THAT(plan, IsOk());
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a) {tag=7, big=long:9007199254740993}
  mix(X=a) -> (Out=b)
  mix(X=b) -> (Out=c)
)");
  ASSERT_THAT(program, IsOk());
  const auto json =
      nlohmann::json::parse(PrintPlan(*plan, PlanStage::kPlan, PlanFormat::kJson, &*program));
  EXPECT_EQ(json["streams"][1].dump(), R"({"name":"h2d","place":"sim:0","priority":-1})");
  EXPECT_EQ(json["events"][1]["recorder"], 1);
  EXPECT_EQ(json["fallbacks"].dump(), R"(["unique"])");
  EXPECT_EQ(json["vars"][0]["dims"].dump(), "[2]");
  EXPECT_FALSE(json["vars"][1].contains("dims"));
  EXPECT_EQ(json["vars"][1]["place"], "sim:0");
  EXPECT_EQ(json["instructions"][0]["attrs"].dump(), R"({"big":9007199254740993,"tag":7})");
  EXPECT_EQ(json["instructions"][1]["place"], "sim:0");
  EXPECT_EQ(json["instructions"][1]["record"], 1);
  EXPECT_EQ(json["instructions"][2]["after_events"].dump(),
            R"([{"blocks_host":true,"event":0,"previous_run":false},)"
            R"({"blocks_host":true,"event":1,"previous_run":true}])");
  EXPECT_EQ(json["edges"][1]["memory"], false);
  EXPECT_EQ(json["edges"][1]["run_type"], "event");
}

// A plan built twice prints the same characters.
TEST(PlanPrintTest, DumpsAreReproducible) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const absl::StatusOr<Plan> a = MainPlan(MakeRandomGraph(seed).program, {}, ProbeOps());
    const absl::StatusOr<Plan> b = MainPlan(MakeRandomGraph(seed).program, {}, ProbeOps());
    ASSERT_THAT(a, IsOk());
    ASSERT_THAT(b, IsOk());
    for (const PlanFormat format : {PlanFormat::kText, PlanFormat::kJson, PlanFormat::kDot}) {
      EXPECT_EQ(PrintPlan(*a, PlanStage::kPlan, format), PrintPlan(*b, PlanStage::kPlan, format));
      EXPECT_EQ(PrintPlan(*a, PlanStage::kDeps, format), PrintPlan(*b, PlanStage::kDeps, format));
    }
  }
}

}  // namespace
}  // namespace interp::testing
