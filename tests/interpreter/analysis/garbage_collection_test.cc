#include "interpreter/analysis/garbage_collection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Names(const Plan& plan, absl::Span<const VarId> ids) {
  std::vector<std::string> names;
  for (const VarId id : ids) names.push_back(plan.vars[id].name);
  return names;
}

//  x -> #0 -> a -> #1 -> b       a's last users are #1 and #2, on separate branches
//             a -> #2 -> c
TEST(GarbageCollectionTest, CountsLastUsesOnEachBranch) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
  mix(X=a) -> (Out=c)
  mix(X=[b, c]) -> (Out=d)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->ref_counts[VarNamed(*plan, "a")], 2);
  EXPECT_THAT(Names(*plan, plan->gc_check[1]), ElementsAre("a"));
  EXPECT_THAT(Names(*plan, plan->gc_check[2]), ElementsAre("a"));
  EXPECT_THAT(Names(*plan, plan->frees_in_order[1]), IsEmpty());
  EXPECT_THAT(Names(*plan, plan->frees_in_order[2]), ElementsAre("a"));
  EXPECT_THAT(Names(*plan, plan->frees_in_order[3]), ElementsAre("b", "c", "d"));
}

TEST(GarbageCollectionTest, AUseFollowedByAnotherIsNotCounted) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
  mix(X=[a, b]) -> (Out=c)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->ref_counts[VarNamed(*plan, "a")], 1);
  EXPECT_THAT(Names(*plan, plan->gc_check[2]), ElementsAre("a", "b", "c"));
}

// Only x's shape is read after #1: its memory goes before that.
TEST(GarbageCollectionTest, ReadersOfTheShapeDoNotKeepTheMemory) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var y int64[2]
  mix(X=y) -> (Out=x)
  mix(X=x) -> (Out=z)
  shape_of(X=x) -> (Out=s)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Names(*plan, plan->frees_in_order[1]), ElementsAre("x", "z"));
  EXPECT_EQ(plan->ref_counts[VarNamed(*plan, "x")], 1);
}

TEST(GarbageCollectionTest, PersistablesStayAndArraysGo) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var w int64[2] param
  var x int64[2]
  var array lod_tensor_array
  update(Param=w, X=x) -> (ParamOut=w)
  push(X=w) -> (ArrayOut=array)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->ref_counts[VarNamed(*plan, "w")], 0);
  EXPECT_EQ(plan->ref_counts[VarNamed(*plan, "array")], 1);
  EXPECT_EQ(plan->ref_counts[VarNamed(*plan, "x")], 1);
}

TEST(GarbageCollectionTest, SwitchedOffNothingIsFreed) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
)",
                                           {.garbage_collection = false});
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->ref_counts, ElementsAre(0, 0));
  EXPECT_THAT(plan->gc_check[0], IsEmpty());
  EXPECT_THAT(plan->frees_in_order[0], IsEmpty());
}

// Variables of runs whose memory an instruction touches, by the definition and nothing else.
std::set<VarId> Touched(const Plan& plan, const Instruction& instruction) {
  std::set<VarId> touched;
  const auto add = [&](VarId id) {
    if (id >= 0 && !plan.vars[id].persistable && !plan.vars[id].folded) touched.insert(id);
  };
  int arg = 0;
  for (size_t slot = 0; slot < instruction.input_counts.size(); ++slot) {
    for (int i = 0; i < instruction.input_counts[slot]; ++i, ++arg) {
      if ((instruction.def->inputs[slot].flags & kNoNeedBuffer) == 0) add(instruction.inputs[arg]);
    }
  }
  for (const VarId id : instruction.outputs) add(id);
  return touched;
}

// Walks the instructions in `order` and frees by the counts; checks that nothing is touched after
// it was freed and that everything is freed in the end.
void CheckCounts(const Plan& plan, const std::vector<InstrId>& order) {
  std::vector<int32_t> counts = plan.ref_counts;
  std::set<VarId> freed, touched;
  for (const InstrId id : order) {
    for (const VarId var : Touched(plan, plan.instructions[id])) {
      ASSERT_EQ(freed.count(var), 0u) << plan.vars[var].name << " in #" << id;
      touched.insert(var);
    }
    for (const VarId var : plan.gc_check[id]) {
      if (--counts[var] == 0) freed.insert(var);
    }
  }
  ASSERT_EQ(freed, touched);
}

void CheckFreesInOrder(const Plan& plan) {
  std::set<VarId> freed, touched;
  for (const InstrId id : plan.order) {
    for (const VarId var : Touched(plan, plan.instructions[id])) {
      ASSERT_EQ(freed.count(var), 0u) << plan.vars[var].name << " in #" << id;
      touched.insert(var);
    }
    freed.insert(plan.frees_in_order[id].begin(), plan.frees_in_order[id].end());
  }
  ASSERT_EQ(freed, touched);
}

std::vector<InstrId> RandomOrder(const Plan& plan, std::mt19937_64& random) {
  std::vector<int32_t> waiting = plan.dep_counts;
  std::vector<InstrId> ready, order;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i] == 0) ready.push_back(static_cast<InstrId>(i));
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const InstrId next : plan.successors[order.back()]) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

TEST(GarbageCollectionTest, NeverFreesEarlyInAnyOrder) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph graph = MakeRandomGraph(seed, {.num_ops = 60});
    const absl::StatusOr<PipelineResult> passed =
        RunPipeline(std::move(graph.program), {.ops = ProbeOps()});
    ASSERT_THAT(passed, IsOk());
    const absl::StatusOr<Plan> plan = MainPlan(passed->program, {}, ProbeOps());
    ASSERT_THAT(plan, IsOk());
    CheckFreesInOrder(*plan);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 20; ++round) CheckCounts(*plan, RandomOrder(*plan, random));
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << ToText(passed->program);
  }
}

}  // namespace
}  // namespace interp::testing
