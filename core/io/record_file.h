// RecordFile: a RecordIO file whose records are read in any order. RecordWriter: makes one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/io/record_index.h"
#include "core/io/recordio.h"
#include "core/status.h"

namespace interp {

// Thread-safety: any number of threads may read, each with its own `joined`.
class RecordFile {
 public:
  // Maps the file and finds its records: from the index beside it where there is one, else by
  // walking from head to head. With `skip_damaged` the file itself is read through instead; what is
  // damaged is left out and noted in damage().
  // Errors start with the path: those of MappedFile, of ParseRecordIndex and of ReadRecord;
  // DataLoss for an index that reaches beyond the file, as one of another file does, and for one
  // that names nothing. Whether an index leaves out records in the middle of the file is not looked
  // at.
  static absl::StatusOr<RecordFile> Open(const std::string& path, bool skip_damaged = false);

  const std::string& path() const { return path_; }
  absl::string_view bytes() const { return file_->bytes(); }
  // By offset. Without an index the keys count from 0.
  const std::vector<RecordPlace>& places() const { return places_; }
  const Damage& damage() const { return damage_; }
  // The bytes before the first record of the index and behind its last one.
  const std::vector<ByteRange>& unindexed() const { return unindexed_; }

  // The record places()[i]; its payload is a view of the file or of `joined`. Errors are those of
  // ReadRecord behind the path; where an index gave the place, they say that it may be wrong.
  absl::StatusOr<Record> Read(size_t i, std::string& joined) const;

 private:
  RecordFile(std::string path, std::shared_ptr<const MappedFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  absl::Status ReadIndex(const std::string& index_path);
  absl::Status Walk();
  void ReadThrough();

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::vector<RecordPlace> places_;
  Damage damage_;
  bool has_index_ = false;
  std::vector<ByteRange> unindexed_;
};

// Writes a RecordIO file and the index beside it. Both appear when they are complete; an index that
// was there before is gone before its records are. Links are followed, so that they stay links.
class RecordWriter {
 public:
  static absl::StatusOr<RecordWriter> Create(const std::string& path);

  // Errors: those of AppendRecord and FileWriter.
  absl::Status Append(uint64_t key, absl::string_view payload);
  uint64_t size_bytes() const { return records_.size_bytes(); }
  size_t num_records() const { return places_.size(); }
  // See FileWriter::Flush. No record may follow.
  absl::Status Flush();
  // Nothing may follow.
  absl::Status Commit();

 private:
  RecordWriter(FileWriter records, FileWriter index, std::string index_path)
      : records_(std::move(records)),
        index_(std::move(index)),
        index_path_(std::move(index_path)) {}

  FileWriter records_;
  FileWriter index_;
  std::string index_path_;
  bool has_index_ = false;  // in index_
  std::vector<RecordPlace> places_;
  std::string bytes_;  // of one record
};

}  // namespace interp
