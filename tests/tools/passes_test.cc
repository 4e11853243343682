// The command `interp passes`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "passes/pipeline.h"
#include "tests/testing/command.h"

namespace interp::testing::passes_test {
namespace {

using ::testing::HasSubstr;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits";

TEST(PassesCommandTest, ListsEveryPassInItsOrder) {
  const CommandResult result = RunInterp({"passes", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto listed = nlohmann::json::parse(result.out);
  ASSERT_EQ(listed.size(), AllPasses().size());
  for (size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i]["name"], std::string(AllPasses()[i].name));
    EXPECT_EQ(listed[i]["on_by_default"], AllPasses()[i].on_by_default);
    EXPECT_FALSE(listed[i].contains("ops_after"));
  }
}

TEST(PassesCommandTest, SaysWhatEachMakesOfAProgram) {
  const CommandResult result = RunInterp(
      {"passes", kDigits, "--enable-pass", "bf16", "--disable-pass", "fuse_fc", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int64_t ops = -1;
  int ran = 0;
  for (const auto& pass : nlohmann::json::parse(result.out)) {
    EXPECT_EQ(pass.contains("ops_after"), pass["name"] != "fuse_fc" && pass["name"] != "fp16" &&
                                              pass["name"] != "int8" && pass["name"] != "addto")
        << pass["name"];
    if (!pass.contains("ops_after")) continue;
    EXPECT_EQ(pass["ops_before"], ops < 0 ? pass["ops_before"].get<int64_t>() : ops)
        << pass["name"];
    ops = pass["ops_after"];
    ++ran;
  }
  EXPECT_GE(ran, 6);
}

TEST(PassesCommandTest, BadRequestsAreExplained) {
  const CommandResult pass = RunInterp({"passes", kDigits, "--enable-pass", "none"});
  EXPECT_EQ(pass.exit_code, 2);
  EXPECT_THAT(pass.err, HasSubstr("no pass named 'none'"));
  const CommandResult model = RunInterp({"passes", "/nowhere/model"});
  EXPECT_EQ(model.exit_code, 4);
}

}  // namespace
}  // namespace interp::testing::passes_test
