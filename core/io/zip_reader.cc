#include "core/io/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "core/io/zip_format.h"

namespace interp {
namespace {

using namespace zip;  // NOLINT(google-build-using-namespace): constants of the format

// Reads little-endian fields one after the other.
// REQUIRES: enough bytes are left; checked once per record by the callers.
class Fields {
 public:
  explicit Fields(absl::string_view bytes) : bytes_(bytes) {}
  uint16_t U16() { return static_cast<uint16_t>(Take(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Take(4)); }
  uint64_t U64() { return Take(8); }
  void Skip(size_t count) { bytes_.remove_prefix(count); }
  size_t left() const { return bytes_.size(); }

 private:
  uint64_t Take(size_t count) {
    uint64_t value = 0;
    for (size_t i = count; i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes_[i - 1]);
    bytes_.remove_prefix(count);
    return value;
  }
  absl::string_view bytes_;
};

// What the central directory says of one entry.
struct RawEntry {
  ZipEntry entry;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint64_t stored_bytes = 0;
};

// `size` bytes at `offset`, or nullopt when the archive is shorter.
std::optional<absl::string_view> Part(absl::string_view archive, uint64_t offset, uint64_t size) {
  if (offset > archive.size() || size > archive.size() - offset) return std::nullopt;
  return archive.substr(offset, size);
}

bool HasLocator64(absl::string_view archive, size_t end_offset) {
  if (end_offset < kLocator64Bytes) return false;
  return Fields(archive.substr(end_offset - kLocator64Bytes)).U32() == kLocator64Signature;
}

absl::StatusOr<Directory> ReadEnd64(absl::string_view archive, size_t locator_offset) {
  Fields locator(archive.substr(locator_offset));
  locator.Skip(4 + 4);  // signature, disk
  const uint64_t offset = locator.U64();
  const std::optional<absl::string_view> bytes = Part(archive, offset, kEnd64Bytes);
  if (!bytes.has_value() || Fields(*bytes).U32() != kEnd64Signature) {
    return DataLoss("byte ", locator_offset, ": no zip64 end record is where it says");
  }
  Fields fields(*bytes);
  fields.Skip(4 + 8 + 2 + 2 + 4 + 4 + 8);  // signature, size, versions, disks, entries on this disk
  Directory directory;
  directory.num_entries = fields.U64();
  directory.size_bytes = fields.U64();
  directory.offset = fields.U64();
  return directory;
}

// Finds the end record: at the very end, or followed by a comment of up to 64 KiB.
absl::StatusOr<Directory> ReadEnd(absl::string_view archive) {
  if (archive.size() < kEndBytes) return InvalidArgument("no zip archive: it is too short");
  const size_t last = archive.size() - kEndBytes;
  const size_t first = last - std::min<size_t>(last, std::numeric_limits<uint16_t>::max());
  for (size_t at = last + 1; at > first; --at) {
    const size_t offset = at - 1;
    Fields fields(archive.substr(offset));
    if (fields.U32() != kEndSignature) continue;
    fields.Skip(2 + 2 + 2);  // disks, entries on this disk
    Directory directory;
    directory.num_entries = fields.U16();
    directory.size_bytes = fields.U32();
    directory.offset = fields.U32();
    if (fields.U16() != fields.left()) continue;  // the comment does not reach to the end
    if (HasLocator64(archive, offset)) return ReadEnd64(archive, offset - kLocator64Bytes);
    return directory;
  }
  return InvalidArgument("no zip archive, or cut off: it has no end record");
}

// Replaces the values that are in the zip64 extra field, in their fixed order.
absl::Status ReadExtra64(Fields extra, RawEntry* raw) {
  while (extra.left() >= 4) {
    const uint16_t id = extra.U16();
    const uint16_t size = extra.U16();
    if (size > extra.left()) break;
    if (id != kZip64Extra) {
      extra.Skip(size);
      continue;
    }
    size_t left = size;
    for (uint64_t* value :
         {&raw->entry.size_bytes, &raw->stored_bytes, &raw->entry.header_offset}) {
      if (*value != kIn64) continue;
      if (left < 8) return DataLoss("its zip64 field is too short");
      *value = extra.U64();
      left -= 8;
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Reads one record at the front of `directory` and removes it.
absl::StatusOr<RawEntry> ReadRecord(absl::string_view* directory) {
  if (directory->size() < kEntryBytes) return DataLoss("the central directory ends here");
  Fields fields(*directory);
  RawEntry raw;
  if (fields.U32() != kEntrySignature) return DataLoss("no entry of the central directory");
  fields.Skip(2 + 2);  // versions
  raw.flags = fields.U16();
  raw.method = fields.U16();
  fields.Skip(2 + 2);  // time, date
  raw.entry.crc = fields.U32();
  raw.stored_bytes = fields.U32();
  raw.entry.size_bytes = fields.U32();
  const size_t name_size = fields.U16();
  const size_t extra_size = fields.U16();
  const size_t comment_size = fields.U16();
  fields.Skip(2 + 2 + 4);  // disk, attributes
  raw.entry.header_offset = fields.U32();
  if (name_size + extra_size + comment_size > fields.left()) {
    return DataLoss("the central directory ends within this entry");
  }
  raw.entry.name = std::string(directory->substr(kEntryBytes, name_size));
  const Fields extra(directory->substr(kEntryBytes + name_size, extra_size));
  if (const absl::Status status = ReadExtra64(extra, &raw); !status.ok()) return status;
  directory->remove_prefix(kEntryBytes + name_size + extra_size + comment_size);
  return raw;
}

// Sets `data` of the entry from its local header and checks sizes.
absl::Status LocateData(absl::string_view archive, RawEntry* raw) {
  ZipEntry& entry = raw->entry;
  if ((raw->flags & kEncryptedFlag) != 0) return Unimplemented("it is encrypted");
  if (raw->method != kStored && raw->method != kDeflated) {
    return Unimplemented("compression method ", raw->method, " is not supported");
  }
  entry.deflated = raw->method == kDeflated;
  const std::optional<absl::string_view> header = Part(archive, entry.header_offset, kLocalBytes);
  if (!header.has_value()) return DataLoss("it lies outside of the archive");
  Fields fields(*header);
  if (fields.U32() != kLocalSignature) return DataLoss("no local header is there");
  fields.Skip(kLocalBytes - 4 - 2 - 2);
  const uint64_t name_size = fields.U16();
  const uint64_t extra_size = fields.U16();
  const std::optional<absl::string_view> data =
      Part(archive, entry.header_offset + kLocalBytes + name_size + extra_size, raw->stored_bytes);
  if (!data.has_value()) return DataLoss("its ", raw->stored_bytes, " bytes reach over the end");
  entry.data = *data;
  constexpr uint64_t kMaxRatio = 1032;  // of deflate: 258 bytes from 2 bits
  const uint64_t most = entry.deflated ? data->size() * kMaxRatio : data->size();
  if (entry.size_bytes > most || (!entry.deflated && entry.size_bytes != data->size())) {
    return DataLoss(data->size(), " bytes cannot hold the ", entry.size_bytes, " it claims");
  }
  return absl::OkStatus();
}

std::string Describe(const ZipEntry& entry) {
  return absl::StrCat("entry '", absl::Utf8SafeCEscape(entry.name), "' at byte ",
                      entry.header_offset);
}

// Overlapping entries are how a small archive is made to give an endless amount of data.
absl::Status CheckOverlap(absl::string_view archive, const std::vector<ZipEntry>& entries) {
  std::vector<const ZipEntry*> sorted;
  for (const ZipEntry& entry : entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return a->header_offset < b->header_offset;
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const absl::string_view before = sorted[i - 1]->data;
    const auto before_end = static_cast<uint64_t>(before.data() + before.size() - archive.data());
    if (before_end > sorted[i]->header_offset) {
      return DataLoss(Describe(*sorted[i]), ": it overlaps ", Describe(*sorted[i - 1]));
    }
  }
  return absl::OkStatus();
}

// The size to start with for an entry that claims `size_bytes`: arrays rarely shrink to less than a
// sixteenth. A claim beyond that is believed step by step, as the data come.
size_t FirstCapacity(const ZipEntry& entry) {
  constexpr uint64_t kUsualRatio = 16;
  constexpr uint64_t kSmall = uint64_t{1} << 20;
  return std::min(entry.size_bytes, std::max(kSmall, entry.data.size() * kUsualRatio));
}

absl::StatusOr<BufferRef> Grow(const BufferRef& full, uint64_t size_bytes) {
  const size_t capacity = std::min<uint64_t>(size_bytes, uint64_t{2} * full->size_bytes);
  INTERP_ASSIGN_OR_RETURN(BufferRef larger, SystemAllocator().Allocate(capacity));
  std::memcpy(larger->data, full->data, full->size_bytes);
  return larger;
}

// One deflated entry being extracted.
class Inflation {
 public:
  explicit Inflation(const ZipEntry& entry) : entry_(entry), in_(entry.data) {}
  ~Inflation() { inflateEnd(&stream_); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  absl::StatusOr<BufferRef> Run() {
    INTERP_ASSIGN_OR_RETURN(out_, SystemAllocator().Allocate(FirstCapacity(entry_)));
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) return ResourceExhausted("zlib has no memory");
    int result = Z_OK;
    while (result == Z_OK) {
      if (used_ == out_->size_bytes && used_ < entry_.size_bytes) {
        INTERP_ASSIGN_OR_RETURN(out_, Grow(out_, entry_.size_bytes));
      }
      result = Step();
    }
    if (result == Z_STREAM_END && used_ == entry_.size_bytes) return std::move(out_);
    return DataLoss("its compressed data is damaged or does not give ", entry_.size_bytes,
                    " bytes");
  }

 private:
  int Step() {
    constexpr size_t kMaxStep = size_t{1} << 30;  // zlib counts in 32 bits
    Bytef beyond = 0;  // one byte more than claimed, to see whether there is more
    const size_t in_step = std::min(in_.size(), kMaxStep);
    const size_t out_step = std::min(out_->size_bytes - used_, kMaxStep);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in_.data()));
    stream_.avail_in = static_cast<uInt>(in_step);
    stream_.next_out = out_step > 0 ? static_cast<Bytef*>(out_->data) + used_ : &beyond;
    stream_.avail_out = static_cast<uInt>(std::max<size_t>(out_step, 1));
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in_.remove_prefix(in_step - stream_.avail_in);
    if (out_step == 0 && stream_.avail_out == 0) return Z_DATA_ERROR;
    used_ += out_step > 0 ? out_step - stream_.avail_out : 0;
    return result;
  }

  const ZipEntry& entry_;
  absl::string_view in_;
  z_stream stream_ = {};
  BufferRef out_;
  size_t used_ = 0;
};

absl::StatusOr<BufferRef> CopyStored(const ZipEntry& entry) {
  INTERP_ASSIGN_OR_RETURN(BufferRef buffer, SystemAllocator().Allocate(entry.size_bytes));
  std::memcpy(buffer->data, entry.data.data(), entry.data.size());
  return buffer;
}

}  // namespace

absl::StatusOr<std::vector<ZipEntry>> ListZip(absl::string_view archive) {
  INTERP_ASSIGN_OR_RETURN(const Directory directory, ReadEnd(archive));
  std::optional<absl::string_view> records = Part(archive, directory.offset, directory.size_bytes);
  if (!records.has_value()) {
    return DataLoss("the central directory at byte ", directory.offset,
                    " lies outside of the archive");
  }
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < directory.num_entries; ++i) {
    absl::StatusOr<RawEntry> raw = ReadRecord(&*records);
    if (!raw.ok()) {
      const auto offset = static_cast<size_t>(records->data() - archive.data());
      return Annotate(raw.status(), absl::StrCat("entry #", i, " at byte ", offset));
    }
    if (absl::EndsWith(raw->entry.name, "/")) continue;
    if (const absl::Status status = LocateData(archive, &*raw); !status.ok()) {
      return Annotate(status, Describe(raw->entry));
    }
    entries.push_back(std::move(raw->entry));
  }
  INTERP_RETURN_IF_ERROR(CheckOverlap(archive, entries));
  return entries;
}

absl::StatusOr<BufferRef> ExtractZip(const ZipEntry& entry) {
  absl::StatusOr<BufferRef> extracted = entry.deflated ? Inflation(entry).Run() : CopyStored(entry);
  if (!extracted.ok()) return Annotate(extracted.status(), Describe(entry));
  BufferRef buffer = *std::move(extracted);
  const uint32_t crc = Crc({static_cast<const char*>(buffer->data), buffer->size_bytes});
  if (crc != entry.crc) {
    return DataLoss(Describe(entry), ": its checksum is ", absl::Hex(crc, absl::kZeroPad8),
                    ", expected ", absl::Hex(entry.crc, absl::kZeroPad8));
  }
  return buffer;
}

}  // namespace interp
