// RecordIO files, as MXNet's tools and dmlc-core write them: records of any bytes one after
// another.
//
//   u32 0xCED7230A | u32 (part << 29 | length) | length bytes | zero bytes up to a multiple of 4
//
// all little-endian. Where the magic number lies in a payload at a multiple of 4, the record is cut
// there into parts and the number itself left out; part is 0 for a whole record, 1, 2 and 3 for the
// first, a middle and the last part. So the magic number at a multiple of 4 with part 0 or 1 behind
// it begins a record, wherever reading starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

// A record holds fewer bytes: lengths have 29 bits.
inline constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 29;

struct Record {
  absl::string_view payload;
  uint64_t offset = 0;  // of its first byte in the file
  uint64_t end = 0;     // of what follows it
};

// The record at `offset` of a file's bytes. The payload is a view of `file`, or of `joined` where
// the record has several parts. Thread-safety: any number of threads, each with its own `joined`.
// Errors: DataLoss, which starts with the offset of what is damaged or cut off.
absl::StatusOr<Record> ReadRecord(absl::string_view file, uint64_t offset, std::string& joined);

// The end of the record at `offset`, found from the heads of its parts alone: a file is walked
// through without being read. Errors: those of ReadRecord, but for a length that reaches into the
// records behind it.
absl::StatusOr<uint64_t> SkipRecord(absl::string_view file, uint64_t offset);

// Where the first record at or behind `from` begins; the file's size when there is none. What lies
// in between is not looked at.
uint64_t FindRecord(absl::string_view file, uint64_t from);

// The bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

// Part `index` of `count` of a file: the same number of bytes for each, both ends moved forward to
// the begin of a record. Each record lies in exactly one part; parts may be empty. The same records
// as of dmlc-core's InputSplit. REQUIRES: 0 <= index < count.
ByteRange PartOfRecords(absl::string_view file, int64_t index, int64_t count);

// Bytes of a file that hold no record.
struct DamagedRange {
  ByteRange bytes;
  std::string problem;
};

// All of them in a file.
struct Damage {
  static constexpr size_t kMostRanges = 1000;
  std::vector<DamagedRange> ranges;  // the first kMostRanges
  uint64_t num_ranges = 0;
  uint64_t num_bytes = 0;
};

// The records of a file from begin to end.
// Thread-safety: none. Ownership: `file` outlives the object.
class RecordReader {
 public:
  // `skip_damaged`: damaged bytes are passed over up to the next record and noted in damage().
  RecordReader(absl::string_view file, ByteRange range, bool skip_damaged)
      : file_(file), at_(range.begin), end_(range.end), skip_damaged_(skip_damaged) {}

  // nullopt at the end. The payload stays until the next call. Errors: those of ReadRecord, which
  // stay the answer.
  absl::StatusOr<std::optional<Record>> Next();
  const Damage& damage() const { return damage_; }

 private:
  const absl::string_view file_;
  uint64_t at_;
  const uint64_t end_;
  const bool skip_damaged_;
  std::string joined_;
  Damage damage_;
};

// Appends `payload` as a record to `file`. InvalidArgument for a part of kMaxRecordBytes or
// more.
absl::Status AppendRecord(absl::string_view payload, std::string& file);

}  // namespace interp
