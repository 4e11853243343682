// What `interp --version` says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/machine/build_info.h"
#include "core/machine/processor.h"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(VersionTest, TheFirstLineIsTheVersionAlone) {
  const CommandResult result = RunInterp({"--version"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n');
  EXPECT_EQ(lines[0], absl::StrCat("interp ", GetBuildInfo().version));
}

TEST(VersionTest, TheOthersTellLibraryProcessorAndBuild) {
  const BuildInfo& info = GetBuildInfo();
  const std::string text = RunInterp({"--version"}).out;
  // This program is linked with the same library.
  EXPECT_THAT(text, HasSubstr(absl::StrCat("for ", info.level, ": ", LibraryPath(), "\n")));
  EXPECT_THAT(LibraryPath(), StartsWith(INTERP_BINARY_DIR));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("processor  ", ProcessorLevel())));
  EXPECT_THAT(text, HasSubstr(absl::StrCat(info.build, ", by ", info.compiler)));
  EXPECT_THAT(text, HasSubstr("protobuf 3."));
}

}  // namespace
}  // namespace interp::testing
