// Examples of the documentation, as they stand there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

// The lines from the one that starts with `first` on, as long as they are indented.
std::string Example(const std::string& document, absl::string_view first) {
  constexpr size_t kIndent = 4;
  const absl::StatusOr<std::string> text =
      ReadFile(absl::StrCat(INTERP_SOURCE_DIR, "/docs/", document));
  EXPECT_TRUE(text.ok()) << text.status().message();
  std::string example;
  for (const absl::string_view line : absl::StrSplit(text.value_or(""), '\n')) {
    const bool indented = line.substr(0, kIndent) == "    ";
    if (example.empty() ? !(indented && absl::StartsWith(line.substr(kIndent), first))
                        : !indented) {
      if (!example.empty()) break;
      continue;
    }
    absl::StrAppend(&example, line.substr(kIndent), "\n");
  }
  return example;
}

TEST(DocsTest, TheProgramTextOfFormatsRuns) {
  const TemporaryFolder folder;
  std::ofstream(folder / "net.txt") << Example("formats.md", "program version=");
  const CommandResult result = RunInterp({"run", folder / "net.txt", "--feed", "x=random:1x3x32x32",
                                          "--feed", "w=random", "--fetch", "z"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("z      float32  [1,8,30,30]"));
}

}  // namespace
}  // namespace interp::testing
