// Runs the cases of tests/passes/*.txt: a program in, the program after some passes out.
//
//   === a sentence on what the case shows
//   passes: insert_feed_fetch, inplace
//   fetches: y
//   --- in
//   block 0
//     ...
//   --- out
//   block 0
//     ...
//
// `feeds:` and `fetches:` may be left out. Where an error is expected, `out` is "error: ..." .
// UPDATE_GOLDEN=1 in the environment rewrites the `out` parts; review the difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/fake_ops.h"

namespace interp {
namespace {

struct Case {
  std::string title;
  std::vector<std::string> header;  // lines as they are
  std::string in;
  std::string out;

  // The comma-separated values of a header line, nullopt without the line.
  std::optional<std::vector<std::string>> Values(absl::string_view key) const {
    for (absl::string_view line : header) {
      if (!absl::ConsumePrefix(&line, absl::StrCat(key, ":"))) continue;
      std::vector<std::string> values;
      for (const absl::string_view value : absl::StrSplit(line, ',')) {
        values.emplace_back(absl::StripAsciiWhitespace(value));
      }
      return values;
    }
    return std::nullopt;
  }
};

std::vector<Case> ReadCases(const std::string& path) {
  std::vector<Case> cases;
  std::ifstream file(path);
  std::string* part = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    if (absl::StartsWith(line, "=== ")) {
      cases.emplace_back().title = line.substr(4);
      part = nullptr;
    } else if (line == "--- in") {
      part = &cases.back().in;
    } else if (line == "--- out") {
      part = &cases.back().out;
    } else if (part != nullptr) {
      absl::StrAppend(part, line, "\n");
    } else {
      cases.back().header.push_back(line);
    }
  }
  return cases;
}

void WriteCases(const std::string& path, const std::vector<Case>& cases) {
  std::ofstream file(path);
  for (const Case& c : cases) {
    file << (&c == &cases[0] ? "" : "\n") << "=== " << c.title << "\n";
    for (const std::string& line : c.header) file << line << "\n";
    file << "--- in\n" << c.in << "--- out\n" << c.out;
  }
}

absl::StatusOr<std::string> RunCase(const Case& c) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(c.in));
  const PassContext context{testing::FakeOps(), c.Values("feeds"), c.Values("fetches")};
  std::vector<Pass> passes;
  for (const std::string& name : c.Values("passes").value_or(std::vector<std::string>())) {
    for (const Pass& pass : AllPasses()) {
      if (pass.name == name) passes.push_back(pass);
    }
    if (passes.empty() || passes.back().name != name) return NotFound("no pass '", name, "'");
  }
  INTERP_ASSIGN_OR_RETURN(const PipelineResult result,
                          RunPasses(std::move(program), context, passes));
  return ToText(result.program);
}

std::vector<std::string> GoldenFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(INTERP_SOURCE_DIR "/tests/passes")) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class PassGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PassGoldenTest, Matches) {
  std::vector<Case> cases = ReadCases(GetParam());
  EXPECT_FALSE(cases.empty());
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  for (Case& c : cases) {
    const absl::StatusOr<std::string> got = RunCase(c);
    const std::string out = got.ok() ? *got : absl::StrCat("error: ", got.status().message(), "\n");
    if (!update) {
      EXPECT_EQ(out, c.out) << c.title;
    }
    c.out = out;
  }
  if (update) WriteCases(GetParam(), cases);
}

INSTANTIATE_TEST_SUITE_P(Files, PassGoldenTest, ::testing::ValuesIn(GoldenFiles()),
                         [](const auto& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });

}  // namespace
}  // namespace interp
