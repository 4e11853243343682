#include "core/resource/random_state_file.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/io/file.h"

namespace interp {
namespace {

constexpr absl::string_view kFirstLine = "interp random state 1";
constexpr size_t kMaxBytes = 1024;

bool ReadField(absl::string_view line, absl::string_view name, uint64_t& value) {
  return absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ") &&
         absl::SimpleAtoi(line, &value);
}

}  // namespace

absl::StatusOr<RandomState> ReadRandomState(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  RandomState state;
  if (lines.size() == 4 && lines[0] == kFirstLine && ReadField(lines[1], "seed", state.seed) &&
      ReadField(lines[2], "stream", state.stream) && ReadField(lines[3], "step", state.step)) {
    return state;
  }
  return absl::DataLossError(
      absl::StrCat("'", path, "' is no state of random numbers: expected the lines \"", kFirstLine,
                   "\", \"seed N\", \"stream N\" and \"step N\""));
}

absl::Status WriteRandomState(const std::string& path, const RandomState& state) {
  INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(writer.Append(absl::StrCat(kFirstLine, "\nseed ", state.seed, "\nstream ",
                                                    state.stream, "\nstep ", state.step, "\n")));
  return writer.Commit();
}

}  // namespace interp
