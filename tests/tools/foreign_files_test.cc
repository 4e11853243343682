// Files that are no programs of Paddle, given to the commands for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ForeignFilesTest, EveryCommandSaysWhatTheyAre) {
  const TemporaryFolder folder;
  std::ofstream(folder / "empty.pdmodel") << "";
  std::ofstream(folder / "m.onnx") << std::string("\x08\x07\x12\x07pytorch", 11);
  std::ofstream(folder / "m.json") << "{\"base_code\":{}, \"program\":{}}";
  for (const auto& [name, words] : {std::pair("empty.pdmodel", "the file is empty"),
                                    {"m.onnx", "an ONNX model"},
                                    {"m.json", "a program of Paddle 3"}}) {
    for (const char* command : {"run", "info", "dump", "verify"}) {
      const CommandResult result = RunInterp({command, folder / name});
      EXPECT_EQ(result.exit_code, 4) << command;
      EXPECT_THAT(result.err, StartsWith(folder / name));
      EXPECT_THAT(result.err, HasSubstr(words));
    }
  }
}

}  // namespace
}  // namespace interp::testing
