// What cannot be printed is an error, whatever the command.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/str_replace.h"
#include "tests/testing/command.h"

namespace interp::testing::standard_output_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/";
const std::string kModel = kDigits + "digits.pdmodel";

// A terminal whose input nobody reads.
class Terminal {
 public:
  Terminal() : keeper_(posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_EQ(grantpt(keeper_), 0);
    EXPECT_EQ(unlockpt(keeper_), 0);
    other_ = open(path(), O_RDWR | O_NOCTTY);  // what was written stays until it is read
  }
  ~Terminal() {
    if (other_ >= 0) close(other_);
    close(keeper_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  const char* path() const { return ptsname(keeper_); }
  // All that was written. Nothing can be written any more: a read that meets the end of what there
  // is fails then, and waits for nothing.
  std::string Shown() {
    close(std::exchange(other_, -1));
    std::string text;
    std::array<char, 4096> part;
    for (ssize_t got = 1; got > 0; text.append(part.data(), static_cast<size_t>(got))) {
      got = std::max<ssize_t>(read(keeper_, part.data(), part.size()), 0);
    }
    return text;
  }

 private:
  int keeper_ = -1;
  int other_ = -1;
};

TEST(StandardOutputTest, NamesInFilesDoNotReachATerminalAsCommands) {
  const TemporaryFolder folder;
  const std::string path = folder / "evil.txt";
  std::ofstream(path) << "program version=0\nblock 0\n  var x float32[1]\n"
                         "  \"a\\x1b[2J\"(X=x) -> (Out=x)\n";
  Terminal terminal;
  EXPECT_EQ(RunInterp({"info", path}, terminal.path()).exit_code, 0);
  const std::string shown = terminal.Shown();
  EXPECT_THAT(shown, HasSubstr("a\\x1b[2J"));
  EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
  EXPECT_THAT(RunInterp({"info", path}).out, HasSubstr("a\x1b[2J"));
}

TEST(StandardOutputTest, NothingIsShownWhereNothingWasWritten) {
  Terminal terminal;
  EXPECT_EQ(RunInterp({"info", "none.pdmodel"}, terminal.path()).exit_code, 4);
  EXPECT_EQ(terminal.Shown(), "");
}

TEST(StandardOutputTest, LongTextsReachATerminalWhole) {
  const std::string text = RunInterp({"run", "--help"}).out;
  ASSERT_GT(text.size(), 4096);
  Terminal terminal;
  EXPECT_EQ(RunInterp({"run", "--help"}, terminal.path()).exit_code, 0);
  EXPECT_EQ(absl::StrReplaceAll(terminal.Shown(), {{"\r\n", "\n"}}), text);
}

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
