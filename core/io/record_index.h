// Where the records of a RecordIO file begin: a text file beside it with a line "key<TAB>offset"
// for each record, as MXNet's tools write it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/status.h"

namespace interp {

struct RecordPlace {
  uint64_t key = 0;
  uint64_t offset = 0;  // of the record in the file
  bool operator==(const RecordPlace&) const = default;
};

std::string FormatRecordIndex(absl::Span<const RecordPlace> places);
// Errors name the line: InvalidArgument for one that is no key and offset, and for
// two records with the same offset.
absl::StatusOr<std::vector<RecordPlace>> ParseRecordIndex(absl::string_view text);

// "train.idx" for "train.rec"; of other names, with ".idx" behind them.
std::string IndexPathOf(absl::string_view record_path);
// Whether something is there to be read as an index: a pipe, which would be waited for, is not.
bool MayBeIndex(const std::string& index_path);

}  // namespace interp
