// What cannot be printed is an error, whatever the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/command.h"

namespace interp::testing::standard_output_test {
namespace {

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/";
const std::string kModel = kDigits + "digits.pdmodel";

class StandardOutputTest : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(StandardOutputTest, AFullDiskIsAnError) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = GetParam();
  if (arguments[0] == "compile") arguments.insert(arguments.end(), {"-o", folder / "digits.plan"});
  ASSERT_EQ(RunInterp(arguments).exit_code, 0);
  const CommandResult result = RunInterp(arguments, /*out=*/"/dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "cannot write to standard output: No space left on device\n");
}

INSTANTIATE_TEST_SUITE_P(
    AllCommands, StandardOutputTest,
    ::testing::Values(
        std::vector<std::string>{"run", kModel, "--params", kDigits + "digits.pdiparams", "--feed",
                                 kDigits + "image.npy"},
        std::vector<std::string>{"dump", kModel, "--stage=passes", "--format=pb"},
        std::vector<std::string>{"dump", kModel, "--format=html"},
        std::vector<std::string>{"dump", kModel}, std::vector<std::string>{"info", kModel},
        std::vector<std::string>{"verify", kModel}, std::vector<std::string>{"compile", kModel},
        std::vector<std::string>{"ops"}, std::vector<std::string>{"ops", "relu"},
        std::vector<std::string>{"--help"}, std::vector<std::string>{"run", "--help"},
        std::vector<std::string>{"--version"}));

}  // namespace
}  // namespace interp::testing::standard_output_test
