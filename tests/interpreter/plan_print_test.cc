// Runs the cases of tests/interpreter/*.txt: a program in, a dump of its plan out. The form of the
// files is in tests/testing/text_cases.h. Keys: `stage` (deps or plan); `format` (text, json or
// dot; text without it); `options` (sequential, no_gc, plain), may be left out.
#include "interpreter/plan_print.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
                         ::testing::ValuesIn(TextCaseFiles("tests/interpreter")),
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

// A plan built twice prints the same characters.
TEST(PlanPrintTest, DumpsAreReproducible) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const absl::StatusOr<Plan> a = BuildPlan(MakeRandomGraph(seed).program, {}, ProbeOps());
    const absl::StatusOr<Plan> b = BuildPlan(MakeRandomGraph(seed).program, {}, ProbeOps());
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
