// Long because each kind of violation has a plan of its own.
#include "interpreter/verify/verify_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/matchers.h"
#include "tests/testing/mutations.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/sample.h"

namespace interp::testing {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;

const PlanOptions kOnDevice = {.place = {PlaceKind::kSim, 0}};

Plan Built(absl::string_view text, const PlanOptions& options = {}) {
  absl::StatusOr<Plan> plan = PlanOf(text, options);
  EXPECT_THAT(plan, IsOk());
  return *std::move(plan);
}

// The first mutation of that kind; by default that is about instruction `first`.
Plan WithMutation(const Plan& plan, MutationKind kind, int32_t first = -1) {
  for (const Mutation& mutation : AllMutations(plan)) {
    if (mutation.kind != kind || (first >= 0 && mutation.first != first)) continue;
    return Mutate(plan, mutation);
  }
  ADD_FAILURE() << "no mutation " << Name(kind);
  return plan;
}

std::vector<ViolationKind> Kinds(const Plan& plan) {
  std::vector<ViolationKind> kinds;
  for (const Violation& violation : VerifyPlan(plan).violations) kinds.push_back(violation.kind);
  return kinds;
}

const PlanOptions kVariants[] = {
    {},
    {.sequential = true},
    {.garbage_collection = false},
    kOnDevice,
    {.place = {PlaceKind::kSim, 0}, .single_stream = true},
    {.garbage_collection = false, .place = {PlaceKind::kSim, 0}},
};

TEST(VerifyPlanTest, PlansOfRandomProgramsAreProved) {
  for (const uint64_t seed : Seeds(300)) {
    RandomGraph graph = MakeRandomGraph(seed, {.num_ops = static_cast<int>(10 + seed % 70)});
    const absl::StatusOr<PipelineResult> passed =
        RunPipeline(std::move(graph.program), {.ops = ProbeOps()});
    ASSERT_THAT(passed, IsOk());
    for (const PlanOptions& options : kVariants) {
      const absl::StatusOr<Plan> plan = MainPlan(passed->program, options, ProbeOps());
      ASSERT_THAT(plan, IsOk()) << "seed " << seed << "\n" << ToText(passed->program);
      const VerifyReport report = VerifyPlan(*plan);
      ASSERT_TRUE(report.proved()) << "seed " << seed << "\n"
                                   << ToText(AsPlans(*plan), report) << ToText(passed->program);
    }
  }
}

constexpr absl::string_view kSmall = R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
  mix(X=a) -> (Out=c)
  mix(X=b) -> (Out=a)
  mix(X=[a, c]) -> (Out=d)
)";

TEST(VerifyPlanTest, AProofSaysWhatWasChecked) {
  const Plan plan = Built(kSmall);
  EXPECT_EQ(ToText(AsPlans(plan), VerifyPlan(plan)), R"(proved
  checked  5 instructions, 5 edges
           7 pairs of accesses to 5 variables and 0 shared storages
           5 frees, 0 implicit orders, 0 events with 0 waits
  could go 0 edges, 0 waits
)");
}

TEST(VerifyPlanTest, AMissingEdgeIsNamed) {
  const Plan plan = WithMutation(Built(kSmall), MutationKind::kDropEdge, 0);
  EXPECT_EQ(ToText(AsPlans(plan), VerifyPlan(plan)), R"(not proved: 1 violation
  read after write of a: no kept edge or path of kept edges makes #1 run after #0
    #0 mix(x) -> (a)
    #1 mix(a) -> (b)
  checked  5 instructions, 4 edges
           7 pairs of accesses to 5 variables and 0 shared storages
           5 frees, 0 implicit orders, 0 events with 0 waits
)");
  EXPECT_THAT(Kinds(WithMutation(Built(kSmall), MutationKind::kDropEdge, 2)),
              ::testing::Contains(ViolationKind::kWriteAfterRead));
}

TEST(VerifyPlanTest, WritesAreOrdered) {
  const Plan plan = Built(R"(block 0
  source() -> (Out=a) {dtype=3, shape=[1]}
  source() -> (Out=a) {dtype=3, shape=[1]}
)");
  EXPECT_THAT(Kinds(WithMutation(plan, MutationKind::kDropEdge)),
              ::testing::Contains(ViolationKind::kWriteAfterWrite));
}

TEST(VerifyPlanTest, NamesOfOneMemoryAreToldApart) {
  const Plan plan = Built(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=c)
  mix(X=a) -> (Out=b) inplace(X->Out)
)");
  const Plan mutant = WithMutation(plan, MutationKind::kDropEdge, 1);
  const VerifyReport report = VerifyPlan(mutant);
  EXPECT_THAT(report.violations,
              ::testing::Contains(
                  AllOf(Field(&Violation::kind, ViolationKind::kWriteAfterRead),
                        Field(&Violation::detail, HasSubstr("'a' and 'b' may share memory")))));
}

// x is copied to the device; the host reads what comes back.
TEST(VerifyPlanTest, IssueIsNotCompletion) {
  const Plan plan = Built(R"(block 0
  var x int64[2] param
  var array lod_tensor_array
  mix(X=x) -> (Out=x)
  push(X=x) -> (ArrayOut=array)
)",
                          kOnDevice);
  const Plan mutant = WithMutation(plan, MutationKind::kDropWait);
  const VerifyReport report = VerifyPlan(mutant);
  ASSERT_FALSE(report.proved());
  EXPECT_THAT(report.violations[0].detail, HasSubstr("is issued first, but nothing makes"));
  EXPECT_THAT(report.violations[0].detail, HasSubstr("has completed it"));
}

// The copy to the host of one run reads x; the next run's update must not be faster.
TEST(VerifyPlanTest, RunsMayOverlapOnADevice) {
  const Plan plan = Built(R"(block 0
  var p int64[2] param
  var q int64[2] param
  update(Param=p, X=q) -> (ParamOut=p)
  mix(X=p) -> (Out=a) {execution_stream="own"}
)",
                          kOnDevice);
  int found = 0;
  for (const Mutation& mutation : AllMutations(plan)) {
    if (mutation.kind != MutationKind::kDropWait) continue;
    if (!plan.instructions[mutation.first].waits[mutation.index].previous_run) continue;
    const VerifyReport report = VerifyPlan(Mutate(plan, mutation));
    ASSERT_FALSE(report.proved());
    ++found;
    EXPECT_TRUE(report.violations[0].next_run) << ToText(AsPlans(plan), report);
    EXPECT_THAT(ToText(AsPlans(plan), report), HasSubstr("in the next run"));
  }
  EXPECT_GT(found, 0);
}

TEST(VerifyPlanTest, CountsWhatCouldGo) {
  Plan plan = Built(kSmall);
  plan.edges.push_back({.from = 0, .to = 4});  // 0 -> 1 -> 3 -> 4
  std::erase_if(plan.edges, [](const Edge& e) { return e.from == 0 && e.to == 3; });
  ChangeList(plan.successors, 0, [](auto& list) { list.push_back(4); });
  ++plan.dep_counts[4];
  std::sort(plan.edges.begin(), plan.edges.end(), [](const Edge& a, const Edge& b) {
    return std::make_pair(a.to, a.from) < std::make_pair(b.to, b.from);
  });
  const VerifyReport report = VerifyPlan(plan);
  EXPECT_TRUE(report.proved()) << ToText(AsPlans(plan), report);
  EXPECT_EQ(report.redundant_edges, 1);
  EXPECT_TRUE(report.all_redundancy_found);

  Plan device =
      Built("block 0\n  var x int64[2]\n  mix(X=x) -> (Out=a)\n  mix(X=a) -> (Out=b)\n", kOnDevice);
  EXPECT_EQ(VerifyPlan(device).redundant_waits, 0);
  for (size_t i = 0; i < device.instructions.size(); ++i) {
    if (device.instructions[i].waits.empty()) continue;
    device.instructions[i].waits.push_back(device.instructions[i].waits[0]);
    device.instructions[i + 1].waits.push_back(device.instructions[i].waits[0]);
    break;
  }
  EXPECT_TRUE(VerifyPlan(device).proved());
  EXPECT_EQ(VerifyPlan(device).redundant_waits, 2);
}

struct Damage {
  ViolationKind kind;
  std::function<void(Plan&)> make;
};

TEST(VerifyPlanTest, WrongCountsAndFreesAreFound) {
  const Damage damages[] = {
      {ViolationKind::kDependencyCount, [](Plan& p) { ++p.dep_counts[4]; }},
      {ViolationKind::kTraceOrder, [](Plan& p) { std::swap(p.order[0], p.order[1]); }},
      {ViolationKind::kFree, [](Plan& p) { ++p.ref_counts[VarNamed(p, "c")]; }},
      {ViolationKind::kFree,
       [](Plan& p) {
         ChangeList(p.gc_check, 4, [&](auto& list) { list.push_back(VarNamed(p, "d")); });
       }},
      {ViolationKind::kFree,
       [](Plan& p) {
         ChangeList(p.frees_in_order, 4, [&](auto& list) { list.push_back(VarNamed(p, "d")); });
       }},
      {ViolationKind::kFree,
       [](Plan& p) { ChangeList(p.frees_in_order, 4, [](auto& list) { list.clear(); }); }},
      {ViolationKind::kFree, [](Plan& p) { p.vars[VarNamed(p, "c")].persistable = true; }},
      {ViolationKind::kFree, [](Plan& p) { p.fetch_list = VarNamed(p, "c"); }},
      {ViolationKind::kOverwritten,
       [](Plan& p) {
         p.instructions[1].share = {{0, 0}};
       }},
      {ViolationKind::kOverwritten,
       [](Plan& p) { p.instructions[4].outputs[0] = VarNamed(p, "c"); }},
      {ViolationKind::kOverwritten,
       [](Plan& p) { p.vars[VarNamed(p, "d")].copy_of = VarNamed(p, "x"); }},
      {ViolationKind::kFree, [](Plan& p) { p.vars[VarNamed(p, "x")].copy_of = 0; }},
      {ViolationKind::kPlace,
       [](Plan& p) {
         p.vars[VarNamed(p, "c")].place = {PlaceKind::kSim, 0};
       }},
      {ViolationKind::kEvent, [](Plan& p) { p.events.push_back({2}); }},
      {ViolationKind::kEvent,
       [](Plan& p) {
         p.events.push_back({2});
         p.instructions[2].record = 0;  // of the host
       }},
  };
  for (const Damage& damage : damages) {
    Plan plan = Built(kSmall);
    damage.make(plan);
    EXPECT_THAT(Kinds(plan), ::testing::Contains(damage.kind))
        << ToText(AsPlans(plan), VerifyPlan(plan));
  }
}

// A copy from another device reads there, and writes where it runs.
TEST(VerifyPlanTest, CopiesBetweenDevicesKeepToTheirPlaces) {
  constexpr char kTwo[] = R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a) {op_device="sim:0"}
  mix(X=a) -> (Out=b) {op_device="sim:1"}
)";
  EXPECT_THAT(Kinds(Built(kTwo)), ::testing::IsEmpty());
  Plan reads_host = Built(kTwo);
  reads_host.vars[VarNamed(reads_host, "a")].place = {};
  EXPECT_THAT(Kinds(reads_host), ::testing::Contains(ViolationKind::kPlace));
  Plan writes_elsewhere = Built(kTwo);
  writes_elsewhere.vars[VarNamed(writes_elsewhere, "a_device_sim:0_sim:1")].place = {
      PlaceKind::kSim, 0};
  EXPECT_THAT(Kinds(writes_elsewhere), ::testing::Contains(ViolationKind::kPlace));
}

TEST(VerifyPlanTest, AValueThatTheNextRunReadsIsNotOverwritten) {
  Plan plan = Built(R"(block 0
  var p int64[2] param
  mix(X=p) -> (Out=a)
)");
  plan.instructions[0].share = {{0, 0}};
  const VerifyReport report = VerifyPlan(plan);
  ASSERT_THAT(report.violations, ::testing::SizeIs(1));
  EXPECT_EQ(report.violations[0].kind, ViolationKind::kOverwritten);
  EXPECT_TRUE(report.violations[0].next_run);
}

// The memory is a parameter's and lives on; its name v is written anew in each run.
TEST(VerifyPlanTest, ViewsOfParametersDoNotLiveOn) {
  const Plan plan = Built(R"(block 0
  var p int64[4] param
  view(X=p) -> (Out=v) {shape=[2, 2], op_device="cpu"}
  mix(X=v) -> (Out=a)
)",
                          kOnDevice);
  EXPECT_TRUE(VerifyPlan(plan).proved()) << ToText(AsPlans(plan), VerifyPlan(plan));
}

TEST(VerifyPlanTest, WhatABlockLeavesIsNotOverwritten) {
  absl::StatusOr<std::vector<Plan>> plans = PlansOf(R"(block 0
  var x int64[3,2]
  var s int64[2]
  scan(Rows=x, State=s) -> (Out=y) {sub_block=block:1, names=["row", "before", "after", "made"]}
block 1 parent=0
  mix(X=[before, row]) -> (Out=after)
  mix(X=[after]) -> (Out=made)
)");
  ASSERT_THAT(plans, IsOk());
  EXPECT_TRUE(VerifyPlans(*plans).proved());
  (*plans)[1].instructions[1].share = {{0, 0}};
  const VerifyReport report = VerifyPlans(*plans);
  ASSERT_THAT(report.violations, ::testing::SizeIs(1));
  EXPECT_EQ(report.violations[0].kind, ViolationKind::kOverwritten);
  EXPECT_THAT(ToText(*plans, report), HasSubstr("the kernel that runs the block reads it"));
}

// Neither two new outputs nor a new one beside the variable's own new value.
TEST(VerifyPlanTest, AnInputServesOneOutput) {
  Plan two = Built("block 0\n  var x int64[2]\n  split2(X=x) -> (A=a, B=b)\n");
  two.instructions[0].share = {{0, 0}};
  EXPECT_TRUE(VerifyPlan(two).proved());
  two.instructions[0].share = {{0, 0}, {0, 1}};
  EXPECT_THAT(Kinds(two), ::testing::Contains(ViolationKind::kOverwritten));

  Plan update = Built("block 0\n  var x int64[2]\n  split2(X=x) -> (A=a, B=b)\n");
  update.instructions[0].outputs[1] = VarNamed(update, "x");
  update.instructions[0].share = {{0, 1}};
  EXPECT_THAT(Kinds(update), ::testing::Not(::testing::Contains(ViolationKind::kOverwritten)));
  update.instructions[0].share = {{0, 0}, {0, 1}};
  EXPECT_THAT(Kinds(update), ::testing::Contains(ViolationKind::kOverwritten));
}

TEST(VerifyPlanTest, WaitsNeedARecordBeforeThem) {
  const Plan plan = Built(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
)",
                          kOnDevice);
  const Plan no_record = WithMutation(plan, MutationKind::kDropRecord);
  EXPECT_THAT(ToText(AsPlans(no_record), VerifyPlan(no_record)),
              AllOf(HasSubstr("is said to be recorded by it, but is not"),
                    HasSubstr("waits for nothing: that instruction does not record the event")));
  const Plan no_edge = WithMutation(plan, MutationKind::kDropEdge, plan.events[0].recorder);
  EXPECT_THAT(ToText(AsPlans(no_edge), VerifyPlan(no_edge)),
              HasSubstr("waits for nothing: nothing makes sure that the event is recorded first"));
}

TEST(VerifyPlanTest, WaitsOfTheHostBlockIt) {
  Plan plan = Built(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b) {op_device="cpu"}
)",
                    kOnDevice);
  const auto waits_here = [](const Instruction& instruction) {
    return instruction.place.on_host() && !instruction.waits.empty();
  };
  const auto waiter = std::find_if(plan.instructions.begin(), plan.instructions.end(), waits_here);
  ASSERT_NE(waiter, plan.instructions.end());
  waiter->waits[0].blocks_host = false;
  EXPECT_THAT(ToText(AsPlans(plan), VerifyPlan(plan)),
              HasSubstr("waits for nothing: the host has no stream that could wait"));
}

// Each edge that only an implicit order asks for.
TEST(VerifyPlanTest, ImplicitOrdersAreChecked) {
  for (const absl::string_view text : {R"(block 0
  var x int64[2]
  c_allreduce(X=x) -> (Out=a)
  send_v2(X=x) -> ()
  c_sync_comm_stream(X=x) -> (Out=d)
  mix(X=x) -> (Out=e)
)",
                                       R"(block 0
  read() -> (Out=x)
  source() -> (Out=b) {dtype=3, shape=[1]}
)",
                                       R"(block 0
  var x int64[2]
  coalesce_tensor(Input=[x, x]) -> (Output=[p, q], FusedOutput=f)
  mix(X=x) -> (Out=p)
  c_allreduce(X=f) -> (Out=f)
  mix(X=q) -> (Out=y)
)"}) {
    const Plan plan = Built(text);
    EXPECT_TRUE(VerifyPlan(plan).proved());
    EXPECT_GT(VerifyPlan(plan).implicit_orders, 0);
    int implicit = 0;
    for (const Edge& edge : plan.edges) {
      if (edge.shrunk || edge.kind <= EdgeKind::kWriteAfterWrite) continue;
      ++implicit;
      const Plan mutant = Mutate(plan, {MutationKind::kDropEdge, edge.from, edge.to});
      EXPECT_THAT(Kinds(mutant), ::testing::Contains(ViolationKind::kImplicitOrder)) << text;
    }
    EXPECT_GT(implicit, 0) << text;
  }
}

TEST(VerifyPlanTest, DamagedStructureIsReportedAlone) {
  Plan plan = Built(kSmall);
  plan.order.pop_back();
  const VerifyReport report = VerifyPlan(plan);
  EXPECT_FALSE(report.proved());
  EXPECT_EQ(ToText(AsPlans(plan), report), "not proved: order has 4 entries, expected 5\n");
}

TEST(VerifyPlanTest, JsonSaysTheSame) {
  const Plan plan = WithMutation(Built(kSmall), MutationKind::kDropEdge, 0);
  const auto json = nlohmann::json::parse(ToJson(AsPlans(plan), VerifyPlan(plan)));
  EXPECT_EQ(json["proved"], false);
  EXPECT_EQ(json["num_violations"], 1);
  EXPECT_EQ(json["violations"][0]["kind"], "read after write");
  EXPECT_EQ(json["violations"][0]["first"], 0);
  EXPECT_EQ(json["violations"][0]["second"], 1);
  EXPECT_EQ(json["violations"][0]["var"], "a");
  EXPECT_EQ(json["instructions"], 5);
}

}  // namespace
}  // namespace interp::testing
