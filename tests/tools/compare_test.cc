// The command `interp compare`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing::compare_test {
namespace {

using ::testing::HasSubstr;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits";

// x --scale--> a --relu--> b --scale--> a again, fetched; `bias` of the first scale.
std::string Chain(const std::string& bias, const std::string& last = "relu") {
  return "program version=0\n"
         "block 0\n"
         "  var feed feed_minibatch\n"
         "  var fetch fetch_list\n"
         "  var x float32[-1,4]\n"
         "  var a float32[-1,4]\n"
         "  var b float32[-1,4]\n"
         "  feed(X=feed) -> (Out=x) {col=0}\n"
         "  scale(X=x) -> (Out=a) {scale=2.0, bias=" +
         bias +
         "}\n"
         "  " +
         last +
         "(X=a) -> (Out=b)\n"
         "  scale(X=b) -> (Out=a) {scale=3.0, bias=0.0}\n"
         "  fetch(X=a) -> (Out=fetch) {col=0}\n";
}

class CompareCommandTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  const TemporaryFolder folder_;
};

TEST_F(CompareCommandTest, WaysToRunGiveTheSame) {
  const CommandResult result = RunInterp(
      {"compare", kDigits, "--b=--scheduler async --workers 2 --no-gc --disable-pass inplace"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" values compared, 0 differ"));
}

TEST_F(CompareCommandTest, OtherParametersAreSomethingToCompareWith) {
  const CommandResult result =
      RunInterp({"compare", kDigits, "--params-b", kDigits + "/digits.pdiparams"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" values compared, 0 differ"));
}

TEST_F(CompareCommandTest, FetchesOfADeviceAreComparedToo) {
  const CommandResult result = RunInterp({"compare", kDigits, "--b=--place sim", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["first"], nullptr);
  EXPECT_EQ(report["values"].back()["op"], "what is fetched");
}

TEST_F(CompareCommandTest, FindsTheFirstThatDiffers) {
  const CommandResult result =
      RunInterp({"compare", Write("a.txt", Chain("1.0")), Write("b.txt", Chain("1.0", "abs")),
                 "--feed", "x=fill:-3:2x4", "--json"});
  ASSERT_EQ(result.exit_code, 3) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["first"], "b");
  // Both values of `a` count, each by itself.
  std::vector<bool> a_is_same;
  for (const auto& value : report["values"]) {
    if (value["variable"] == "a" && value["write"] >= 0) a_is_same.push_back(value["ok"]);
    if (value["ok"] == false) {
      EXPECT_NE(value.at("worst_got"), value.at("worst_expected"));
    }
  }
  EXPECT_EQ(a_is_same, (std::vector<bool>{true, false}));
}

TEST_F(CompareCommandTest, WhatIsFedIsNotCompared) {
  const auto program = [](const std::string& result) {
    return "program version=0\nblock 0\n  var x float32[-1,4]\n  var " + result +
           " float32[-1,4]\n  relu(X=x) -> (Out=" + result + ")\n";
  };
  const std::string a = Write("a.txt", program("a"));
  const CommandResult same =
      RunInterp({"compare", a, "--b=--no-gc", "--feed", "x=random:2x4", "--fetch", "a", "--json"});
  ASSERT_EQ(same.exit_code, 0) << same.err;
  for (const auto& value : nlohmann::json::parse(same.out)["values"]) {
    EXPECT_EQ(value["variable"], "a");
  }
  const CommandResult fed =
      RunInterp({"compare", a, "--b=--no-prune", "--feed", "x=random:2x4", "--fetch", "x"});
  EXPECT_EQ(fed.exit_code, 2) << fed.out;
  EXPECT_THAT(fed.err, HasSubstr("A and B compute no variable of one name"));
}

TEST_F(CompareCommandTest, ATextNamesOpVariableAndWorstElement) {
  const CommandResult result = RunInterp({"compare", Write("a.txt", Chain("1.0")),
                                          Write("b.txt", Chain("1.5")), "--feed", "x=fill:1:1x4"});
  ASSERT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.out, HasSubstr("first: op #1 scale, a: differs, 4 of 4 elements"));
  EXPECT_THAT(result.out, HasSubstr("worst 3.5 for 3 at [0,0]"));
}

TEST_F(CompareCommandTest, NumbersOfSixteenBitsAreComparedWithWhatTheyStandFor) {
  const std::vector<std::string> command = {"compare", kDigits, "--b=--precision bf16", "--json"};
  const CommandResult strict = RunInterp(command);
  ASSERT_EQ(strict.exit_code, 3) << strict.err;
  EXPECT_EQ(nlohmann::json::parse(strict.out)["first"], "batch_norm_0.tmp_4");
  std::vector<std::string> loose = command;
  loose.insert(loose.end(), {"--atol", "1"});
  EXPECT_EQ(RunInterp(loose).exit_code, 0);
}

TEST_F(CompareCommandTest, BadRequestsAreUsageErrors) {
  const auto error = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"compare", kDigits});
    const CommandResult result = RunInterp(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(error({}), HasSubstr("nothing to compare with"));
  EXPECT_THAT(error({"--b=--bogus"}), HasSubstr("B: The following argument was not expected"));
  EXPECT_THAT(error({"--a=--threads -1"}), HasSubstr("A: "));
  EXPECT_THAT(error({"--a= "}), HasSubstr("A: the flags are blank"));
  EXPECT_THAT(error({"--a", ""}), HasSubstr("--a: the value is empty"));
  EXPECT_THAT(error({"--b=--no-gc \""}), HasSubstr("have no second \""));
  EXPECT_THAT(error({"--b=--precision bf16", "--feed", "image=random:2x3"}),
              HasSubstr("A: feed 'image' is float32[2,3]"));
  EXPECT_THAT(error({Write("a.txt", Chain("1.0"))}),
              HasSubstr("A and B compute no variable of one name"));
}

}  // namespace
}  // namespace interp::testing::compare_test
