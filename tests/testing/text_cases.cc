#include "tests/testing/text_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace interp::testing {
namespace {

std::vector<TextCase> ReadCases(const std::string& path) {
  std::vector<TextCase> cases;
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

void WriteCases(const std::string& path, const std::vector<TextCase>& cases) {
  std::ofstream file(path);
  for (const TextCase& c : cases) {
    file << (&c == &cases[0] ? "" : "\n") << "=== " << c.title << "\n";
    for (const std::string& line : c.header) file << line << "\n";
    file << "--- in\n" << c.in << "--- out\n" << c.out;
  }
}

}  // namespace

std::optional<std::vector<std::string>> TextCase::Values(absl::string_view key) const {
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

std::vector<std::string> TextCaseFiles(absl::string_view folder) {
  std::vector<std::string> files;
  const std::string path = absl::StrCat(INTERP_SOURCE_DIR, "/", folder);
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string TextCaseName(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

void CheckTextCases(const std::string& path,
                    const std::function<absl::StatusOr<std::string>(const TextCase&)>& run) {
  std::vector<TextCase> cases = ReadCases(path);
  EXPECT_FALSE(cases.empty()) << path;
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  for (TextCase& c : cases) {
    const absl::StatusOr<std::string> got = run(c);
    const std::string out = got.ok() ? *got : absl::StrCat("error: ", got.status().message(), "\n");
    if (!update) {
      EXPECT_EQ(out, c.out) << c.title;
    }
    c.out = out;
  }
  if (update) WriteCases(path, cases);
}

}  // namespace interp::testing
