#include "tools/sizes.h"

#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace interp {
namespace {

constexpr std::array<const char*, 5> kByteUnits = {"B", "KiB", "MiB", "GiB", "TiB"};

// SimpleAtod takes hexadecimal numbers, too.
bool ParseDecimal(absl::string_view text, double* value) {
  return text.find_first_of("xX") == text.npos && absl::SimpleAtod(text, value);
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  std::string upper = absl::AsciiStrToUpper(text);
  absl::string_view number = upper;
  if (!absl::ConsumeSuffix(&number, "IB")) absl::ConsumeSuffix(&number, "B");
  double unit = 1;
  for (const absl::string_view suffix : {"K", "M", "G", "T"}) {
    unit *= 1024;
    if (absl::ConsumeSuffix(&number, suffix)) break;
    if (suffix == "T") unit = 1;
  }
  double value = 0;
  if (!ParseDecimal(number, &value) || !(value >= 0) || value * unit >= 0x1p63) {
    return InvalidArgument("'", text, "' is no amount of memory, expected for example 512M or 2G");
  }
  return static_cast<uint64_t>(value * unit);
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kByteUnits.size(); ++unit) value /= 1024;
  return absl::StrFormat("%.2f %s", value, kByteUnits[unit]);
}

std::string Counted(int64_t count, absl::string_view noun) {
  const bool hisses = absl::EndsWith(noun, "tch") || absl::EndsWith(noun, "x");
  return absl::StrCat(count, " ", noun, count == 1 ? "" : hisses ? "es" : "s");
}

absl::StatusOr<std::chrono::nanoseconds> ParseDuration(absl::string_view text) {
  absl::Duration duration;
  double seconds = 0;
  if (ParseDecimal(text, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    duration = absl::ZeroDuration();
  }
  if (duration <= absl::ZeroDuration() || duration > absl::Hours(24 * 365)) {
    return InvalidArgument("'", text, "' is no duration, expected for example 2.5s or 250ms");
  }
  return absl::ToChronoNanoseconds(duration);
}

absl::StatusOr<std::vector<int64_t>> ParseDims(absl::string_view text) {
  std::vector<int64_t> dims;
  if (text.empty()) return dims;
  for (const absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("x,"))) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0) {
      return InvalidArgument("'", text, "' is no shape, expected for example 1x3x224x224");
    }
    dims.push_back(dim);
  }
  return dims;
}

}  // namespace interp
