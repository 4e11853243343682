#include "core/io/record_index.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace interp {

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
      return InvalidArgument("line ", number, ": '", line.substr(0, 40),
                             "' is no key and offset, as in '7<TAB>4096'");
    }
    places.push_back(place);
  }
  return places;
}

std::string IndexPathOf(absl::string_view record_path) {
  return absl::StrCat(absl::StripSuffix(record_path, ".rec"), ".idx");
}

}  // namespace interp
