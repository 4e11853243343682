#include "core/io/record_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/base/annotate.h"
#include "core/base/errno_status.h"

namespace interp {
namespace {

// Behind an error at a place that an index gave.
constexpr absl::string_view kIndexMayBeWrong =
    "; the file is damaged, or the index is not its own (remove it then)";

}  // namespace

absl::StatusOr<RecordFile> RecordFile::Open(const std::string& path, bool skip_damaged) {
  INTERP_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapped, MappedFile::Open(path));
  RecordFile file(path, std::move(mapped));
  const std::string index_path = IndexPathOf(path);
  if (skip_damaged) {
    file.ReadThrough();
  } else if (MayBeIndex(index_path)) {
    INTERP_RETURN_IF_ERROR(Annotate(file.ReadIndex(index_path), index_path));
  } else {
    INTERP_RETURN_IF_ERROR(Annotate(file.Walk(), path));
  }
  return file;
}

absl::StatusOr<Record> RecordFile::Read(size_t i, std::string& joined) const {
  absl::StatusOr<Record> record = ReadRecord(bytes(), places_[i].offset, joined);
  if (record.ok()) return record;
  return absl::Status(record.status().code(), absl::StrCat(path_, ": ", record.status().message(),
                                                           has_index_ ? kIndexMayBeWrong : ""));
}

absl::Status RecordFile::ReadIndex(const std::string& index_path) {
  INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path));
  INTERP_ASSIGN_OR_RETURN(places_, ParseRecordIndex(text));
  has_index_ = true;
  std::ranges::sort(places_, {}, &RecordPlace::offset);
  if (places_.empty()) {
    if (bytes().empty()) return absl::OkStatus();
    return DataLoss("names no record of '", path_, "', which has ", bytes().size(),
                    " bytes; remove the index, and the records are found all the same");
  }
  // Of a file that was cut off, or of another one, the last record tells.
  const absl::StatusOr<uint64_t> end = SkipRecord(bytes(), places_.back().offset);
  if (!end.ok()) {
    return DataLoss("record ", places_.back().key, " is not in '", path_,
                    "': ", end.status().message(), kIndexMayBeWrong);
  }
  const uint64_t begin = places_.front().offset;
  if (begin > 0) unindexed_.push_back({.begin = 0, .end = begin});
  if (*end < bytes().size()) unindexed_.push_back({.begin = *end, .end = bytes().size()});
  return absl::OkStatus();
}

absl::Status RecordFile::Walk() {
  for (uint64_t at = 0; at < bytes().size();) {
    const uint64_t begin = at;
    INTERP_ASSIGN_OR_RETURN(at, SkipRecord(bytes(), at));
    places_.push_back({.key = places_.size(), .offset = begin});
  }
  return absl::OkStatus();
}

void RecordFile::ReadThrough() {
  RecordReader reader(bytes(), {.begin = 0, .end = bytes().size()}, /*skip_damaged=*/true);
  while (true) {
    const absl::StatusOr<std::optional<Record>> record = reader.Next();
    if (!record.ok() || !record->has_value()) break;
    places_.push_back({.key = places_.size(), .offset = (*record)->offset});
  }
  damage_ = reader.damage();
}

absl::StatusOr<RecordWriter> RecordWriter::Create(const std::string& path) {
  const std::string index_path = IndexPathOf(path);
  INTERP_ASSIGN_OR_RETURN(FileWriter records, FileWriter::Create(path));
  INTERP_ASSIGN_OR_RETURN(FileWriter index, FileWriter::Create(index_path));
  return RecordWriter(std::move(records), std::move(index), index_path);
}

absl::Status RecordWriter::Append(uint64_t key, absl::string_view payload) {
  bytes_.clear();
  INTERP_RETURN_IF_ERROR(AppendRecord(payload, bytes_));
  places_.push_back({.key = key, .offset = records_.size_bytes()});
  return records_.Append(bytes_);
}

absl::Status RecordWriter::Flush() {
  if (!has_index_) {
    INTERP_RETURN_IF_ERROR(index_.Append(FormatRecordIndex(places_)));
    has_index_ = true;
  }
  INTERP_RETURN_IF_ERROR(index_.Flush());
  return records_.Flush();
}

absl::Status RecordWriter::Commit() {
  INTERP_RETURN_IF_ERROR(Flush());
  std::error_code error;
  if (std::filesystem::is_regular_file(index_path_, error)) {
    std::filesystem::remove(std::filesystem::canonical(index_path_, error), error);
    if (error) {
      return ErrnoStatus(error.value(), absl::StrCat("cannot replace '", index_path_, "'"));
    }
  }
  INTERP_RETURN_IF_ERROR(records_.Commit());
  return index_.Commit();
}

}  // namespace interp
