#include "core/io/recordio.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/io/little_endian.h"

namespace interp {
namespace {

constexpr uint32_t kMagic = 0xCED7230A;
constexpr uint64_t kAlign = 4;
constexpr uint64_t kHeadBytes = 8;

enum PartKind : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

constexpr uint64_t RoundUp(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

bool BeginsRecord(absl::string_view file, uint64_t at) {
  return file.size() - at >= kHeadBytes && LoadLittle<uint32_t>(file, at) == kMagic &&
         LoadLittle<uint32_t>(file, at + 4) >> 29 <= kFirst;
}

struct Part {
  absl::string_view bytes;
  uint32_t kind = kWhole;
  uint64_t end = 0;
};

absl::StatusOr<Part> ReadPart(absl::string_view file, uint64_t at) {
  if (at > file.size() || file.size() - at < kHeadBytes) {
    return DataLoss("byte ", at, ": cut off: ", file.size() - std::min<uint64_t>(at, file.size()),
                    " bytes are left, the head of a record has ", kHeadBytes);
  }
  const uint32_t magic = LoadLittle<uint32_t>(file, at);
  if (magic != kMagic) {
    return DataLoss("byte ", at,
                    absl::StrFormat(": no record: found %08x, expected %08x", magic, kMagic));
  }
  const uint32_t word = LoadLittle<uint32_t>(file, at + 4);
  const uint64_t length = word % kMaxRecordBytes;
  const uint64_t left = file.size() - at - kHeadBytes;
  if (RoundUp(length) > left) {
    return DataLoss("byte ", at, ": cut off: the record says ", length, " bytes, but only ", left,
                    " are left");
  }
  return Part{.bytes = file.substr(at + kHeadBytes, length),
              .kind = word >> 29,
              .end = at + kHeadBytes + RoundUp(length)};
}

absl::Status WrongPart(uint64_t at, uint32_t kind, absl::string_view expected) {
  return DataLoss("byte ", at, ": a part of kind ", kind, ", expected ", expected);
}

void AppendPart(absl::string_view bytes, uint32_t kind, std::string& file) {
  AppendLittle(kMagic, file);
  AppendLittle(kind << 29 | static_cast<uint32_t>(bytes.size()), file);
  file.append(bytes.data(), bytes.size());
  file.append(RoundUp(bytes.size()) - bytes.size(), '\0');
}

// Where the magic number lies in `payload` from the multiple of 4 `from` on; npos when nowhere.
size_t FindMagic(absl::string_view payload, size_t from) {
  for (size_t at = from; at + 4 <= payload.size(); at += kAlign) {
    if (LoadLittle<uint32_t>(payload, at) == kMagic) return at;
  }
  return absl::string_view::npos;
}

// Calls take(part, offset of the part) for each part of the record at `offset`. Returns its end.
template <typename Take>
absl::StatusOr<uint64_t> ForEachPart(absl::string_view file, uint64_t offset, const Take& take) {
  INTERP_ASSIGN_OR_RETURN(Part part, ReadPart(file, offset));
  if (part.kind != kWhole && part.kind != kFirst) {
    return WrongPart(offset, part.kind, "0 or 1, which begin a record");
  }
  INTERP_RETURN_IF_ERROR(take(part, offset));
  while (part.kind == kFirst || part.kind == kMiddle) {
    const uint64_t at = part.end;
    INTERP_ASSIGN_OR_RETURN(part, ReadPart(file, at));
    if (part.kind != kMiddle && part.kind != kLast) {
      return WrongPart(at, part.kind, absl::StrCat("2 or 3 of the record at byte ", offset));
    }
    INTERP_RETURN_IF_ERROR(take(part, at));
  }
  return part.end;
}

}  // namespace

absl::StatusOr<Record> ReadRecord(absl::string_view file, uint64_t offset, std::string& joined) {
  Record record{.payload = {}, .offset = offset};
  size_t num_parts = 0;
  const auto take = [&](const Part& part, uint64_t at) -> absl::Status {
    if (const size_t magic = FindMagic(part.bytes, 0); magic != absl::string_view::npos) {
      return DataLoss("byte ", at, ": the record says ", part.bytes.size(),
                      " bytes, but another part begins at byte ", at + kHeadBytes + magic);
    }
    if (num_parts == 0) {
      record.payload = part.bytes;
    } else {
      if (num_parts == 1) joined.assign(record.payload.data(), record.payload.size());
      AppendLittle(kMagic, joined);
      joined.append(part.bytes.data(), part.bytes.size());
      record.payload = joined;
    }
    ++num_parts;
    return absl::OkStatus();
  };
  INTERP_ASSIGN_OR_RETURN(record.end, ForEachPart(file, offset, take));
  return record;
}

absl::StatusOr<uint64_t> SkipRecord(absl::string_view file, uint64_t offset) {
  return ForEachPart(file, offset, [](const Part&, uint64_t) { return absl::OkStatus(); });
}

uint64_t FindRecord(absl::string_view file, uint64_t from) {
  for (uint64_t at = RoundUp(from); at < file.size(); at += kAlign) {
    if (BeginsRecord(file, at)) return at;
  }
  return file.size();
}

ByteRange PartOfRecords(absl::string_view file, int64_t index, int64_t count) {
  const auto parts = static_cast<uint64_t>(count);
  const uint64_t step = RoundUp(file.size() / parts + (file.size() % parts == 0 ? 0 : 1));
  const auto border = [&](int64_t i) -> uint64_t {
    const auto part = static_cast<uint64_t>(i);
    if (part == 0 || step == 0) return 0;
    return part > file.size() / step ? file.size() : FindRecord(file, part * step);
  };
  return {.begin = border(index), .end = border(index + 1)};
}

absl::StatusOr<std::optional<Record>> RecordReader::Next() {
  bool resynchronizing = false;
  while (at_ < end_) {
    absl::StatusOr<Record> record = ReadRecord(file_, at_, joined_);
    if (record.ok()) {
      at_ = record->end;
      return *record;
    }
    if (!skip_damaged_) return record.status();
    const uint64_t begin = at_;
    at_ = std::min(FindRecord(file_, at_ + 1), end_);
    damage_.num_bytes += at_ - begin;
    if (!resynchronizing && damage_.num_ranges++ < Damage::kMostRanges) {
      damage_.ranges.push_back({.bytes = {.begin = begin, .end = begin},
                                .problem = std::string(record.status().message())});
    }
    if (damage_.num_ranges == damage_.ranges.size()) damage_.ranges.back().bytes.end = at_;
    resynchronizing = true;
  }
  return std::optional<Record>();
}

absl::Status AppendRecord(absl::string_view payload, std::string& file) {
  if (payload.size() >= kMaxRecordBytes) {
    return InvalidArgument("a record of ", payload.size(), " bytes, expected fewer than ",
                           kMaxRecordBytes);
  }
  size_t begin = 0;
  uint32_t kind = kWhole;
  for (size_t cut = FindMagic(payload, 0); cut != absl::string_view::npos;
       cut = FindMagic(payload, begin)) {
    AppendPart(payload.substr(begin, cut - begin), begin == 0 ? kFirst : kMiddle, file);
    begin = cut + 4;
    kind = kLast;
  }
  AppendPart(payload.substr(begin), kind, file);
  return absl::OkStatus();
}

}  // namespace interp
