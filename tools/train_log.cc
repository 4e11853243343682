#include "tools/train_log.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/errno_status.h"
#include "core/base/number_text.h"
#include "core/io/file.h"
#include "tools/summary.h"

namespace interp {
namespace {

absl::Status CannotWrite(const std::string& path) {
  return ErrnoStatus(errno, absl::StrCat("cannot write '", path, "'"));
}

// A name with a comma or a quote, as CSV has it.
std::string Quoted(const std::string& name) {
  if (name.find_first_of(",\"\n") == std::string::npos) return name;
  return absl::StrCat("\"", absl::StrJoin(absl::StrSplit(name, '"'), "\"\""), "\"");
}

// Its step, unless the line has another number of columns, as one that a power loss has cut off.
std::optional<int64_t> StepOf(absl::string_view line, std::ptrdiff_t num_columns) {
  int64_t step = 0;
  const absl::string_view number = line.substr(0, line.find(','));
  const bool whole = std::count(line.begin(), line.end(), ',') + 1 == num_columns;
  return whole && absl::SimpleAtoi(number, &step) ? std::optional(step) : std::nullopt;
}

// The whole lines up to step `after` of a log with that header of so many columns; the header alone
// where there are none.
absl::StatusOr<std::string> KeptLines(const std::string& path, const std::string& header,
                                      std::ptrdiff_t num_columns, int64_t after) {
  std::error_code error;
  if (after == 0 || !std::filesystem::exists(path, error)) return header;
  INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  if (text.empty()) return header;
  if (!absl::StartsWith(text, header)) {
    return InvalidArgument("'", path, "' is a log of other fetches: expected the columns ",
                           absl::StripSuffix(header, "\n"));
  }
  // What follows the last end of a line is no line.
  absl::string_view rest(text);
  rest = rest.substr(header.size(), rest.rfind('\n') + 1 - header.size());
  std::string kept = header;
  for (const absl::string_view line : absl::StrSplit(rest, '\n')) {
    if (StepOf(line, num_columns).value_or(after + 1) <= after) absl::StrAppend(&kept, line, "\n");
  }
  return kept;
}

}  // namespace

double ValueOf(const Tensor& fetch) {
  const Summary summary = Summarize({"", fetch});
  if (summary.num_nan > 0 || !summary.has_values) return std::numeric_limits<double>::quiet_NaN();
  return summary.num_infinite > 0 ? std::numeric_limits<double>::infinity()
                                  : summary.mean.value_or(0);
}

absl::StatusOr<TrainLog> TrainLog::Create(const std::string& path,
                                          const std::vector<std::string>& fetches, int64_t after) {
  TrainLog log;
  log.path_ = path;
  std::vector<std::string> columns = {"step"};
  for (const std::string& name : fetches) {
    columns.push_back(Quoted(name));
    log.curves_.push_back({.name = name, .steps = {}, .values = {}});
  }
  if (path.empty()) return log;
  INTERP_ASSIGN_OR_RETURN(
      const std::string kept,
      KeptLines(path, absl::StrJoin(columns, ",") + "\n", std::ssize(columns), after));
  std::error_code ignored;
  const bool is_pipe = std::filesystem::is_fifo(path, ignored);
  if (!is_pipe) {
    // Beside its place first: a run that is killed here has not lost the lines of those before.
    INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
    INTERP_RETURN_IF_ERROR(writer.Append(kept));
    INTERP_RETURN_IF_ERROR(writer.Commit());
  }
  log.file_.reset(std::fopen(path.c_str(), "ae"));
  if (log.file_ == nullptr) return CannotWrite(path);
  // A pipe is opened once: its reader may leave when it is closed.
  if (is_pipe && std::fputs(kept.c_str(), log.file_.get()) < 0) return CannotWrite(path);
  return log;
}

absl::Status TrainLog::Add(int64_t step, const std::vector<Tensor>& fetched) {
  std::string line = absl::StrCat(step);
  for (size_t i = 0; i < fetched.size(); ++i) {
    const double value = ValueOf(fetched[i]);
    absl::StrAppend(&line, ",",
                    fetched[i].dtype == DType::kFloat32 ? FloatText(static_cast<float>(value))
                                                        : FloatText(value));
    curves_[i].steps.push_back(static_cast<double>(step));
    curves_[i].values.push_back(value);
  }
  if (file_ == nullptr) return absl::OkStatus();
  line += "\n";
  if (std::fputs(line.c_str(), file_.get()) < 0) return CannotWrite(path_);
  return Flush();
}

absl::Status TrainLog::Flush() {
  if (file_ != nullptr && std::fflush(file_.get()) != 0) return CannotWrite(path_);
  return absl::OkStatus();
}

}  // namespace interp
