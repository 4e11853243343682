// Any bytes as a RecordIO file and as its index: errors, or records that survive being written and
// read again. Skipping what is damaged finds at least as many, in order, and parts hold each once.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/io/image_record.h"
#include "core/io/record_index.h"
#include "core/io/recordio.h"

namespace {

using namespace interp;  // NOLINT(google-build-using-namespace)

void Check(bool holds) {
  if (!holds) std::abort();
}

struct Contents {
  std::vector<uint64_t> offsets;
  std::vector<std::string> payloads;
  bool whole = false;
};

Contents ReadAll(absl::string_view file, ByteRange range, bool skip_damaged) {
  RecordReader reader(file, range, skip_damaged);
  Contents contents;
  while (true) {
    const absl::StatusOr<std::optional<Record>> record = reader.Next();
    contents.whole = record.ok() && reader.damage().num_ranges == 0;
    Check(record.ok() || !skip_damaged);
    if (!record.ok() || !record->has_value()) break;
    contents.offsets.push_back((*record)->offset);
    contents.payloads.emplace_back((*record)->payload);
    Check(SkipRecord(file, (*record)->offset).value() == (*record)->end);
  }
  uint64_t end = range.begin;
  for (const DamagedRange& damaged : reader.damage().ranges) {
    Check(damaged.bytes.begin >= end && damaged.bytes.end > damaged.bytes.begin);
    end = damaged.bytes.end;
  }
  Check(end <= range.end);
  return contents;
}

void CheckRoundTrip(const std::vector<std::string>& payloads) {
  std::string file;
  for (const std::string& payload : payloads) Check(AppendRecord(payload, file).ok());
  const Contents back = ReadAll(file, {.begin = 0, .end = file.size()}, /*skip_damaged=*/false);
  Check(back.whole && back.payloads == payloads);
}

void CheckParts(absl::string_view file, const Contents& all) {
  for (const int64_t count : {1, 2, 3, 7}) {
    std::vector<uint64_t> offsets;
    uint64_t end = 0;
    for (int64_t i = 0; i < count; ++i) {
      const ByteRange part = PartOfRecords(file, i, count);
      Check(part.begin == end && part.end >= part.begin);
      end = part.end;
      const Contents found = ReadAll(file, part, /*skip_damaged=*/true);
      offsets.insert(offsets.end(), found.offsets.begin(), found.offsets.end());
    }
    Check(end == file.size());
    // A border may fall on a record that a damaged length would have swallowed.
    Check(!all.whole || offsets == all.offsets);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const ByteRange whole = {.begin = 0, .end = size};
  const Contents strict = ReadAll(file, whole, /*skip_damaged=*/false);
  const Contents found = ReadAll(file, whole, /*skip_damaged=*/true);
  Check(strict.payloads.size() <= found.payloads.size());
  Check(std::equal(strict.offsets.begin(), strict.offsets.end(), found.offsets.begin()));
  CheckRoundTrip(found.payloads);
  CheckParts(file, found);
  for (const std::string& payload : found.payloads) {
    const absl::StatusOr<ImageRecord> record = ParseImageRecord(payload);
    if (record.ok()) Check(ParseImageRecord(FormatImageRecord(*record)).ok());
  }
  const absl::StatusOr<std::vector<RecordPlace>> places = ParseRecordIndex(file);
  if (places.ok()) Check(ParseRecordIndex(FormatRecordIndex(*places)).value() == *places);
  return 0;
}
