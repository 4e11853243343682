// Golden tests in text: a file of cases, each an input and the output it gives.
//
//   === a sentence on what the case shows
//   key: value, value
//   --- in
//   block 0
//     ...
//   --- out
//   ...
//
// Where an error is expected, `out` is "error: " and its message. Blank lines do not count.
// UPDATE_GOLDEN=1 in the environment rewrites the `out` parts; review the difference.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp::testing {

struct TextCase {
  std::string title;
  std::vector<std::string> header;  // lines as they are
  std::string in;
  std::string out;

  // The comma-separated values of a header line, nullopt without the line.
  std::optional<std::vector<std::string>> Values(absl::string_view key) const;
};

// The .txt files of a folder of the source tree ("tests/passes"), sorted.
std::vector<std::string> TextCaseFiles(absl::string_view folder);

// The file's name without folder and ending, for names of tests.
std::string TextCaseName(const std::string& path);

// Expects that `run` gives the output of each case of the file, or rewrites the outputs.
void CheckTextCases(const std::string& path,
                    const std::function<absl::StatusOr<std::string>(const TextCase&)>& run);

}  // namespace interp::testing
