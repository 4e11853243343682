#include "core/io/record_index.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace interp {

namespace {

absl::Status CheckDistinct(const std::vector<RecordPlace>& places) {
  std::vector<uint64_t> offsets;
  offsets.reserve(places.size());
  for (const RecordPlace& place : places) offsets.push_back(place.offset);
  std::ranges::sort(offsets);
  const auto twice = std::ranges::adjacent_find(offsets);
  if (twice == offsets.end()) return absl::OkStatus();
  return InvalidArgument("two records begin at byte ", *twice,
                         ": the index is damaged; without it the records are found all the same");
}

}  // namespace

std::string FormatRecordIndex(absl::Span<const RecordPlace> places) {
  std::string text;
  for (const RecordPlace& place : places) {
    absl::StrAppend(&text, place.key, "\t", place.offset, "\n");
  }
  return text;
}

absl::StatusOr<std::vector<RecordPlace>> ParseRecordIndex(absl::string_view text) {
  std::vector<RecordPlace> places;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    RecordPlace place;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &place.key) ||
        !absl::SimpleAtoi(words[1], &place.offset)) {
      return InvalidArgument("line ", number, ": '", absl::Utf8SafeCEscape(line.substr(0, 40)),
                             "' is no key and offset, as in '7<TAB>4096'");
    }
    places.push_back(place);
  }
  INTERP_RETURN_IF_ERROR(CheckDistinct(places));
  return places;
}

std::string IndexPathOf(absl::string_view record_path) {
  return absl::StrCat(absl::StripSuffix(record_path, ".rec"), ".idx");
}

bool MayBeIndex(const std::string& index_path) {
  std::error_code ignored;
  const std::filesystem::file_status kind = std::filesystem::status(index_path, ignored);
  return std::filesystem::exists(kind) && !std::filesystem::is_other(kind);
}

}  // namespace interp
