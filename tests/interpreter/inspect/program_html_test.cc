// The page itself is tested in a browser, by tests/tools/program_view_test.py.
#include "interpreter/inspect/program_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/program_parse.h"
#include "tests/testing/matchers.h"

namespace interp::testing::program_html_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// The text of the element that holds the program.
std::string DataOf(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"program\">";
  const size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find("</script>", at) - at);
}

std::string PageOf(absl::string_view text, const ProgramPage& page = {}) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program.status(), IsOk());
  return program.ok() ? ToHtml(*program, page) : "";
}

nlohmann::json JsonOf(absl::string_view text, const ProgramPage& page = {}) {
  return nlohmann::json::parse(DataOf(PageOf(text, page)));
}

// A row of names, each an index into the strings of `data`, as the names.
std::vector<std::string> Texts(const nlohmann::json& data, const nlohmann::json& row) {
  std::vector<std::string> texts;
  for (const auto& index : row) texts.push_back(data["strings"][index.get<size_t>()]);
  return texts;
}

// Attribute `name` of the op in its text form.
std::string AttrOf(const nlohmann::json& data, const nlohmann::json& op, const std::string& name) {
  for (const auto& attr : data["attrs"][op["attrs"].get<size_t>()]) {
    if (data["strings"][attr[0].get<size_t>()] == name) return attr[1];
  }
  return "none";
}

// One op without arguments.
Program ProgramOf(const std::string& type) {
  Program program;
  program.blocks.resize(1);
  program.blocks[0].ops.resize(1);
  program.blocks[0].ops[0].type = type;
  return program;
}

constexpr absl::string_view kSmall = R"(block 0
  var feed feed_minibatch persistable
  var fetch fetch_list persistable
  var x float32[-1,4]
  var w float32[4,2] param
  feed(X=feed) -> (Out=x) {col=0}
  mul(X=x, Y=w) -> (Out=y) {note="a", x_num_col_dims=1}
  mul(X=x, Y=w) -> (Out=z) {note="a", x_num_col_dims=1}
  fetch(X=y) -> (Out=fetch) {col=0}
)";

TEST(ProgramToHtmlTest, HoldsOpsAndVariables) {
  const nlohmann::json data = JsonOf(kSmall, {"small", {{"Paddle", "2.6.2"}}, {}});
  EXPECT_EQ(data["title"], "small");
  EXPECT_EQ(data["facts"].dump(), R"([["Paddle","2.6.2"]])");
  ASSERT_THAT(data["blocks"], SizeIs(1));
  const nlohmann::json& block = data["blocks"][0];
  ASSERT_THAT(block["ops"], SizeIs(4));
  EXPECT_EQ(Texts(data, {block["ops"][1]["type"]}), std::vector<std::string>{"mul"});
  EXPECT_EQ(Texts(data, block["ops"][1]["in"][1]), (std::vector<std::string>{"Y", "w"}));
  EXPECT_EQ(Texts(data, block["ops"][1]["out"][0]), (std::vector<std::string>{"Out", "y"}));
  const nlohmann::json& w = block["vars"][3];
  EXPECT_EQ(Texts(data, {w[0], w[1]}), (std::vector<std::string>{"w", "float32[4,2]"}));
  EXPECT_EQ(w[2], 3);
  EXPECT_EQ(Texts(data, data["inputs"]), std::vector<std::string>{"x"});
  EXPECT_EQ(Texts(data, data["outputs"]), std::vector<std::string>{"y"});
}

TEST(ProgramToHtmlTest, EqualAttributesAreWrittenOnce) {
  const nlohmann::json data = JsonOf(kSmall);
  const nlohmann::json& ops = data["blocks"][0]["ops"];
  EXPECT_EQ(ops[1]["attrs"], ops[2]["attrs"]);
  EXPECT_THAT(data["attrs"], SizeIs(2));
}

TEST(ProgramToHtmlTest, InfinitiesNanAndLongIntegersSurvive) {
  const nlohmann::json data = JsonOf(
      "block 0\n  op() -> () {a=nan, b=-inf, c=[1.5, inf], d=long:9007199254740993, "
      "e=float64:nan}\n");
  const nlohmann::json& op = data["blocks"][0]["ops"][0];
  EXPECT_EQ(AttrOf(data, op, "a"), "nan");
  EXPECT_EQ(AttrOf(data, op, "b"), "-inf");
  EXPECT_THAT(AttrOf(data, op, "c"), HasSubstr("inf"));
  EXPECT_EQ(AttrOf(data, op, "d"), "long:9007199254740993");
  EXPECT_EQ(AttrOf(data, op, "e"), "float64:nan");
}

TEST(ProgramToHtmlTest, HugeAttributesAreCutAndSaySo) {
  Program program = ProgramOf("assign_value");
  program.blocks[0].ops[0].attrs = {{"values", std::vector<int32_t>(1'000'000, 7)}};
  const std::string page = ToHtml(program, {});
  EXPECT_LT(page.size(), 500'000);
  const nlohmann::json data = nlohmann::json::parse(DataOf(page));
  const std::string text = AttrOf(data, data["blocks"][0]["ops"][0], "values");
  EXPECT_THAT(text, StartsWith("[7,7"));
  EXPECT_THAT(text, EndsWith("... cut, 2000001 characters"));
}

TEST(ProgramToHtmlTest, NamesCannotLeaveTheirElement) {
  const std::string name = "</script><img onerror=alert(1)>\xe2\x80\xa8<!--\"'&amp;";
  Program program = ProgramOf(name);
  program.blocks[0].ops[0].inputs = {{name, {program.Intern(name)}}};
  program.blocks[0].ops[0].attrs = {{name, name}};
  const std::string data = DataOf(ToHtml(program, {name, {{name, name}}, {{name, {}}}}));
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_THAT(data, Not(HasSubstr("\xe2\x80\xa8")));
  const nlohmann::json json = nlohmann::json::parse(data);
  EXPECT_EQ(json["title"], name);
  EXPECT_EQ(json["strings"][json["blocks"][0]["ops"][0]["type"].get<size_t>()], name);
  EXPECT_TRUE(json["statistics"].contains(name));
}

TEST(ProgramToHtmlTest, BytesThatAreNoTextAreReplaced) {
  EXPECT_TRUE(nlohmann::json::accept(DataOf(ToHtml(ProgramOf("a\xff\xfe"), {}))));
}

TEST(ProgramToHtmlTest, OpsTellTheBlocksTheyRunAndThePartOfTraining) {
  const nlohmann::json data = JsonOf(R"(block 0
  while(Condition=c) -> () {sub_block=block:1}
  many() -> () {bodies=blocks:[1,2]}
  sgd(Param=w) -> (ParamOut=w) {op_role=2}
  relu_grad(X=x) -> (Out=y) {op_role=257}
  scale(X=lr) -> (Out=lr) {op_role=16}
block 1 parent=0
block 2 parent=0
)");
  const nlohmann::json& ops = data["blocks"][0]["ops"];
  EXPECT_EQ(ops[0]["blocks"].dump(), "[1]");
  EXPECT_EQ(ops[1]["blocks"].dump(), "[1,2]");
  EXPECT_FALSE(ops[0].contains("part"));
  EXPECT_EQ(ops[2]["part"], "update");
  EXPECT_EQ(ops[3]["part"], "backward");
  EXPECT_EQ(ops[4]["part"], "schedule");
  EXPECT_EQ(data["blocks"][1]["parent"], 0);
}

TEST(ProgramToHtmlTest, StatisticsWithNothingFiniteAreNull) {
  TensorStatistics w;
  w.count = w.num_nan = 2;
  TensorStatistics v;
  v.max = std::numeric_limits<double>::infinity();
  v.histogram = {1};
  const nlohmann::json data = JsonOf(kSmall, {"small", {}, {{"w", w}, {"v", v}}});
  EXPECT_EQ(data["statistics"]["w"]["nan"], 2);
  EXPECT_TRUE(data["statistics"]["w"]["mean"].is_null());
  EXPECT_EQ(data["statistics"]["v"]["max"], "inf");
  EXPECT_EQ(data["statistics"]["v"]["histogram"].dump(), "[1]");
}

// Arguments, places and blocks that do not exist: the page is made to look at such programs.
TEST(ProgramToHtmlTest, DamagedAndEmptyProgramsGiveAPage) {
  EXPECT_TRUE(nlohmann::json::accept(DataOf(ToHtml(Program(), {}))));
  Program program = ProgramOf("odd");
  program.blocks[0].parent_idx = 77;
  program.blocks[0].vars.resize(1);
  program.blocks[0].vars[0].id = 5;
  Op& op = program.blocks[0].ops[0];
  op.inputs = {{"X", {-1, 99}}};
  op.attrs = {{"sub_block", BlockIndex{1000}}, {"op_role", std::string("no number")}};
  op.inplace = {{.input = 9, .output = -3}};
  const nlohmann::json data = nlohmann::json::parse(DataOf(ToHtml(program, {})));
  EXPECT_EQ(data["blocks"][0]["ops"][0]["blocks"].dump(), "[1000]");
  EXPECT_THAT(data["blocks"][0]["ops"][0]["in"][0], SizeIs(3));
}

TEST(ProgramToHtmlTest, IsOneWholePageThatFetchesNothing) {
  const std::string page = PageOf(kSmall);
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("</html>"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  for (const char* outside : {" src=", "href=\"http", "url(http", "@import", "fetch(", "XMLHttp"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

}  // namespace
}  // namespace interp::testing::program_html_test
