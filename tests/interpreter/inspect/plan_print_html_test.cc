// The page itself is tested in a browser, by tests/tools/plan_view_test.py.
#include "interpreter/inspect/plan_print_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/program_parse.h"
#include "interpreter/compile/build_plan.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PageOf(absl::string_view text, absl::string_view title = "plan",
                   PlanStage stage = PlanStage::kPlan) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  if (!program.ok()) return std::string(program.status().message());
  const absl::StatusOr<std::vector<Plan>> plans = BuildPlans(*program, {}, ProbeOps());
  if (!plans.ok()) return std::string(plans.status().message());
  return ToHtml(*plans, *program, title, stage);
}

// The text of the element that holds the plan.
std::string DataOf(const std::string& page) {
  constexpr absl::string_view kBegin = "<script type=\"application/json\" id=\"plan\">";
  const size_t begin = page.find(kBegin.data(), 0, kBegin.size()) + kBegin.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

constexpr absl::string_view kChain = R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a) {tag=7, big=long:9007199254740993}
  mix(X=a) -> (Out=b)
)";

TEST(ToHtmlTest, HoldsThePlanAsJson) {
  const auto data = nlohmann::json::parse(DataOf(PageOf(kChain, "chain.pdmodel")));
  EXPECT_EQ(data["title"], "chain.pdmodel");
  EXPECT_EQ(data["instructions"].size(), 2);
  EXPECT_EQ(data["edges"].size(), 1);
  EXPECT_EQ(data["order"].dump(), "[0,1]");
  EXPECT_EQ(data["show_shrunk"], false);
}

// Numbers of the page's script are doubles.
TEST(ToHtmlTest, AttributesAreTextAndExact) {
  const auto data = nlohmann::json::parse(DataOf(PageOf(kChain)));
  EXPECT_EQ(data["instructions"][0]["attrs"].dump(),
            R"({"big":"long:9007199254740993","tag":"7"})");
}

TEST(ToHtmlTest, StageDepsShowsShrunkEdges) {
  const auto data = nlohmann::json::parse(DataOf(PageOf(kChain, "plan", PlanStage::kDeps)));
  EXPECT_EQ(data["show_shrunk"], true);
}

TEST(ToHtmlTest, NamesCannotLeaveTheirElement) {
  const std::string name = "</script><!-- <script>alert(1)\xe2\x80\xa8\"'&amp;";
  const std::string page = PageOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out="</script><!-- <script>alert(1)\xe2\x80\xa8\"'&amp;")
)",
                                  "<title>");
  const std::string data = DataOf(page);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_THAT(data, Not(HasSubstr("\xe2\x80\xa8")));
  const auto json = nlohmann::json::parse(data);
  EXPECT_EQ(json["instructions"][0]["outputs"]["Out"][0], name);
  EXPECT_EQ(json["title"], "<title>");
}

TEST(ToHtmlTest, IsOneWholePage) {
  const std::string page = PageOf(kChain);
  EXPECT_THAT(page, HasSubstr("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("</html>"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  for (const char* outside : {" src=", "href=\"http", "url(http", "@import", "fetch(", "XMLHttp"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

}  // namespace
}  // namespace interp::testing
