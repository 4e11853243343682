// Ops whose effects are seen outside (OpDef::side_effect): they keep the program's order, also
// those in blocks that other ops run, and verify notices when they do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/verify/verify_plan.h"
#include "tests/testing/matchers.h"
#include "tests/testing/mutations.h"
#include "tests/testing/plans.h"

namespace interp::testing::effect_order_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// say() is seen outside, hush() is not, run() runs its sub_block.
OpRegistry SayingOps() {
  OpRegistry ops;
  OpDef def{.type = "hush",
            .inputs = {},
            .outputs = {},
            .infer = [](InferContext&) { return absl::OkStatus(); },
            .kernels = {{DType::kUndefined, [](KernelContext&) { return absl::OkStatus(); }}}};
  ops.Add(def);
  OpDef run = def;
  run.type = "run";
  run.sub_block = [](const Program&, const Op&, SubBlock&) { return absl::OkStatus(); };
  ops.Add(run);
  def.type = "say";
  def.side_effect = true;
  ops.Add(def);
  return ops;
}

std::vector<Plan> Built(absl::string_view text) {
  static const auto& ops = *new OpRegistry(SayingOps());
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  absl::StatusOr<std::vector<Plan>> plans = BuildPlans(*program, {}, ops);
  EXPECT_THAT(plans, IsOk());
  return *std::move(plans);
}

std::vector<std::string> Edges(const Plan& plan) { return EdgeTexts(plan.edges, plan.vars); }

TEST(EffectOrderTest, WhatIsSeenOutsideKeepsTheOrderOfTheProgram) {
  const std::vector<Plan> plans = Built(R"(block 0
  say() -> ()
  hush() -> ()
  say() -> ()
  say() -> ()
)");
  EXPECT_THAT(Edges(plans[0]), ElementsAre("0->2 sequential", "2->3 sequential"));
}

// The block of #1 is silent, that of #2 has a say two levels down.
constexpr absl::string_view kNested = R"(block 0
  say() -> ()
  run() -> () {sub_block=block:1}
  run() -> () {sub_block=block:2}
  say() -> ()
block 1 parent=0
  hush() -> ()
block 2 parent=0
  run() -> () {sub_block=block:3}
  hush() -> ()
block 3 parent=2
  hush() -> ()
  say() -> ()
)";

TEST(EffectOrderTest, AnOpIsSeenByWhatItsBlockDoes) {
  const std::vector<Plan> plans = Built(kNested);
  EXPECT_THAT(Edges(plans[0]), ElementsAre("0->2 sequential", "2->3 sequential"));
  EXPECT_THAT(Edges(plans[2]), IsEmpty());
}

TEST(EffectOrderTest, VerifyNoticesALostOrder) {
  std::vector<Plan> plans = Built(kNested);
  EXPECT_TRUE(VerifyPlans(plans).proved());
  plans[0] = Mutate(plans[0], {MutationKind::kDropEdge, 0, 2});
  std::vector<ViolationKind> kinds;
  for (const Violation& violation : VerifyPlans(plans).violations) kinds.push_back(violation.kind);
  EXPECT_THAT(kinds, Contains(ViolationKind::kImplicitOrder));
}

}  // namespace
}  // namespace interp::testing::effect_order_test
