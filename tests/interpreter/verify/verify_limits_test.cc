// VerifyPlan on plans that are very large or wrong in any way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "interpreter/verify/verify_plan.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/sample.h"
#include "tests/testing/test_program.h"

namespace interp::testing::verify_limits_test {
namespace {

const PlanOptions kOnDevice = {.place = {PlaceKind::kSim, 0}};

constexpr absl::string_view kSmall = R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
  mix(X=a) -> (Out=c)
  mix(X=b) -> (Out=a)
  mix(X=[a, c]) -> (Out=d)
)";

// Plans from outside pass the check of structure and are wrong in any way: nothing may break.
TEST(VerifyLimitsTest, HostilePlansOnlyFail) {
  std::mt19937 random(5);
  const absl::StatusOr<Plan> built = PlanOf(kSmall, kOnDevice);
  ASSERT_THAT(built, IsOk());
  const Plan& plan = *built;
  const auto any = [&](auto& values) {
    if (!values.empty()) values[random() % values.size()] = static_cast<int32_t>(random() % 16) - 1;
  };
  int checked = 0;
  for (int round = 0; round < 20'000; ++round) {
    Plan hostile = plan;
    for (int change = 0; change < 3; ++change) {
      Instruction& instruction = hostile.instructions[random() % hostile.instructions.size()];
      switch (random() % 12) {
        case 0:
          any(instruction.inputs);
          break;
        case 1:
          any(instruction.outputs);
          break;
        case 2:
          any(hostile.order);
          break;
        case 3:
          any(hostile.dep_counts);
          break;
        case 4:
          any(hostile.ref_counts);
          break;
        case 5:
          any(hostile.gc_check.ids);
          break;
        case 6:
          any(hostile.frees_in_order.ids);
          break;
        case 7:
          any(hostile.successors.ids);
          break;
        case 8:
          any(hostile.successors.begins);
          break;
        case 9:
          instruction.record = static_cast<int32_t>(random() % 5) - 1;
          break;
        case 10:
          instruction.waits.push_back({static_cast<int32_t>(random() % 4), random() % 2 == 0});
          break;
        default:
          instruction.share.push_back(
              {static_cast<int32_t>(random() % 3), static_cast<int32_t>(random() % 2)});
      }
    }
    const VerifyReport report = VerifyPlan(hostile);
    if (report.structure.ok()) ++checked;
    EXPECT_FALSE(ToText(AsPlans(hostile), report).empty());
  }
  EXPECT_GT(checked, 1000);
}

// `inputs` inputs each, drawn from the last `reach` values.
Program RandomDag(int num_ops, int inputs, int reach) {
  std::mt19937 random(1);
  TestProgram builder(DType::kInt64);
  builder.Feed("v0", {2});
  for (int i = 1; i <= num_ops; ++i) {
    std::vector<std::string> from;
    for (int k = 0; k < inputs; ++k) {
      from.push_back(absl::StrCat("v", i - 1 - static_cast<int>(random() % std::min(i, reach))));
    }
    builder.Call("mix", from, absl::StrCat("v", i));
  }
  builder.Fetch(absl::StrCat("v", num_ops));
  return builder.Build();
}

void CheckVerdict(const Plan& plan, bool proved) {
  const VerifyReport report = VerifyPlan(plan);
  EXPECT_EQ(report.proved(), proved);
  EXPECT_LE(report.violations.size(), kMaxReportedViolations);
}

// Without any edge all that was ordered by one is wrong, and none of it may take long to find.
Plan WithoutEdges(Plan plan) {
  plan.edges.clear();
  plan.successors.ids.clear();
  plan.successors.begins.assign(plan.instructions.size() + 1, 0);
  plan.dep_counts.assign(plan.instructions.size(), 0);
  return plan;
}

// Anything quadratic would not end within the time of a test.
TEST(VerifyLimitsTest, AHundredThousandInstructions) {
  struct Case {
    int inputs, reach;
    PlanOptions options;
  };
  const int num_ops = SampleOf(20'000, 100'000);
  for (const Case& c : {Case{1, 1, {}}, Case{3, num_ops, {}}, Case{3, 1000, kOnDevice}}) {
    const absl::StatusOr<Plan> plan =
        MainPlan(RandomDag(num_ops, c.inputs, c.reach), c.options, ProbeOps());
    ASSERT_THAT(plan, IsOk());
    CheckVerdict(*plan, true);
    CheckVerdict(WithoutEdges(*plan), false);
  }
}

}  // namespace
}  // namespace interp::testing::verify_limits_test
