#include "interpreter/verify/plan_structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"

namespace interp::testing::plan_structure_test {
namespace {

Plan Small() {
  absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=[a, x]) -> (Out=b) inplace(X->Out)
  split2(X=b) -> (A=c, B=d)
)");
  EXPECT_THAT(plan, IsOk());
  return *std::move(plan);
}

TEST(PlanStructureTest, BuiltPlansHangTogether) {
  EXPECT_THAT(CheckPlanStructure(Small()), IsOk());
  EXPECT_THAT(CheckPlanStructure(*PlanOf("block 0\n")), IsOk());
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const absl::StatusOr<Plan> plan = MainPlan(MakeRandomGraph(seed).program, {}, ProbeOps());
    ASSERT_THAT(plan, IsOk());
    EXPECT_THAT(CheckPlanStructure(*plan), IsOk()) << "seed " << seed;
  }
}

struct Damage {
  const char* part;  // of the message
  std::function<void(Plan&)> make;
};

TEST(PlanStructureTest, DamageIsNamed) {
  const Damage damages[] = {
      {"#0 mix: has no definition", [](Plan& p) { p.instructions[0].def = nullptr; }},
      {"#1 mix: argument 99 is none of 5 variables",
       [](Plan& p) { p.instructions[1].inputs[1] = 99; }},
      {"argument -2 is none of", [](Plan& p) { p.instructions[1].inputs[1] = -2; }},
      {"slot 'X' has no argument", [](Plan& p) { p.instructions[2].inputs[0] = -1; }},
      {"slot 'X' has 3 of 2 arguments", [](Plan& p) { p.instructions[1].input_counts[0] = 3; }},
      {"slot 'X' has -1 of 2", [](Plan& p) { p.instructions[1].input_counts[0] = -1; }},
      {"list of arguments has 2 entries, expected 1",
       [](Plan& p) { p.instructions[1].input_counts[0] = 1; }},
      {"argument counts has 0 entries", [](Plan& p) { p.instructions[1].input_counts.clear(); }},
      {"output_dtypes has 1", [](Plan& p) { p.instructions[2].output_dtypes.pop_back(); }},
      {"output_layouts has 1", [](Plan& p) { p.instructions[2].output_layouts.pop_back(); }},
      {"kernel -1 is none", [](Plan& p) { p.instructions[0].kernel = -1; }},
      {"has no attributes", [](Plan& p) { p.instructions[0].attrs = nullptr; }},
      {"cannot use the memory of input 2", [](Plan& p) { p.instructions[1].share[0].input = 2; }},
      {"uses the memory of two inputs",
       [](Plan& p) {
         p.instructions[1].share.push_back({1, 0});
       }},
      {"stream 1", [](Plan& p) { p.instructions[0].stream = 1; }},
      {"in queue device", [](Plan& p) { p.instructions[0].queue = QueueKind::kDevice; }},
      {"a place has number -1", [](Plan& p) { p.instructions[0].place.index = -1; }},
      {"records event 0 of 0", [](Plan& p) { p.instructions[0].record = 0; }},
      {"waits for event 3 of 0", [](Plan& p) { p.instructions[0].waits.push_back({3}); }},
      {"recorded by instruction -1", [](Plan& p) { p.events.emplace_back(); }},
      {"inserted op 7 of 0", [](Plan& p) { p.instructions[0].inserted_op = 7; }},
      {"variable 'a' has storage 5", [](Plan& p) { p.vars[1].storage = 5; }},
      {"of the program among", [](Plan& p) { p.num_program_vars = 6; }},
      {"lists of feeds and fetches are variables -1 and 5", [](Plan& p) { p.fetch_list = 5; }},
      {"leads from instruction 1 to 1 of 3", [](Plan& p) { p.edges[0].from = 1; }},
      {"edges are not sorted", [](Plan& p) { p.edges.push_back(p.edges[0]); }},
      {"list of successors has 3 entries", [](Plan& p) { p.successors.begins.pop_back(); }},
      {"not cut into one part", [](Plan& p) { p.successors.ids.push_back(2); }},
      {"not cut into one part", [](Plan& p) { p.successors.begins[1] = 9; }},
      {"the list of successors has 3 of 3", [](Plan& p) { p.successors.ids[0] = 3; }},
      {"#1 is followed by 1", [](Plan& p) { p.successors.ids[1] = 1; }},
      {"dep_counts has 2 entries, expected 3", [](Plan& p) { p.dep_counts.pop_back(); }},
      {"dep_counts has a count of -1", [](Plan& p) { p.dep_counts[0] = -1; }},
      {"order has 2 entries", [](Plan& p) { p.order.pop_back(); }},
      {"order has instruction 0", [](Plan& p) { p.order[1] = 0; }},
      {"ref_counts has 4", [](Plan& p) { p.ref_counts.pop_back(); }},
      {"gc_check has 5 of 5",
       [](Plan& p) {
         p.gc_check = Together({{5}, {}, {}});
       }},
      {"frees_in_order has 3", [](Plan& p) { p.frees_in_order.begins.pop_back(); }},
  };
  for (const Damage& damage : damages) {
    Plan plan = Small();
    damage.make(plan);
    EXPECT_THAT(CheckPlanStructure(plan),
                FailsWith(absl::StatusCode::kInvalidArgument, damage.part));
  }
}

}  // namespace
}  // namespace interp::testing::plan_structure_test
