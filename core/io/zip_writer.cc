#include "core/io/zip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "core/io/zip_format.h"

namespace interp {
namespace {

using namespace zip;  // NOLINT(google-build-using-namespace): constants of the format

// One entry, with what the directory says of it.
struct Entry {
  std::string name;
  uint16_t flags = 0;
  uint16_t method = kStored;
  uint32_t crc = 0;
  uint64_t stored_bytes = 0;
  uint64_t size_bytes = 0;
  uint64_t header_offset = 0;
};

class Record {
 public:
  void U16(uint64_t value) { Put(value, 2); }
  void U32(uint64_t value) { Put(value, 4); }
  void U64(uint64_t value) { Put(value, 8); }
  void Bytes(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  std::string bytes_;
};

absl::StatusOr<std::string> Deflate(absl::Span<const absl::string_view> parts) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, /*memLevel=*/8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return ResourceExhausted("zlib has no memory");
  }
  constexpr size_t kMaxStep = size_t{1} << 30;  // zlib counts in 32 bits
  std::string out;
  char chunk[1 << 15];
  const auto run = [&](int flush) {
    do {
      stream.next_out = reinterpret_cast<Bytef*>(chunk);
      stream.avail_out = sizeof(chunk);
      deflate(&stream, flush);
      out.append(chunk, sizeof(chunk) - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (absl::string_view part : parts) {
    while (!part.empty()) {
      const absl::string_view step = part.substr(0, kMaxStep);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(step.data()));
      stream.avail_in = static_cast<uInt>(step.size());
      run(Z_NO_FLUSH);
      part.remove_prefix(step.size());
    }
  }
  run(Z_FINISH);
  deflateEnd(&stream);
  return out;
}

uint64_t Or64(uint64_t value) { return std::min<uint64_t>(value, kIn64); }

bool Needs64(uint64_t value) { return value >= kIn64; }

// The fields that local header and directory record have in common.
void PutCommon(const Entry& entry, bool zip64, Record* record) {
  record->U16(zip64 ? kVersion64 : kVersion);
  record->U16(entry.flags);
  record->U16(entry.method);
  record->U16(0);  // midnight
  record->U16(kFirstDay);
  record->U32(entry.crc);
  record->U32(Or64(entry.stored_bytes));
  record->U32(Or64(entry.size_bytes));
  record->U16(entry.name.size());
}

std::string FormatLocalHeader(const Entry& entry) {
  const bool zip64 = Needs64(entry.stored_bytes) || Needs64(entry.size_bytes);
  Record record;
  record.U32(kLocalSignature);
  Entry both = entry;  // a local zip64 field always has both sizes
  if (zip64) both.stored_bytes = both.size_bytes = kIn64;
  PutCommon(both, zip64, &record);
  record.U16(zip64 ? 20 : 0);
  record.Bytes(entry.name);
  if (zip64) {
    record.U16(kZip64Extra);
    record.U16(16);
    record.U64(entry.size_bytes);
    record.U64(entry.stored_bytes);
  }
  return record.bytes();
}

std::string FormatDirectoryRecord(const Entry& entry) {
  Record extra;
  for (const uint64_t value : {entry.size_bytes, entry.stored_bytes, entry.header_offset}) {
    if (Needs64(value)) extra.U64(value);
  }
  const bool zip64 = !extra.bytes().empty();
  Record record;
  record.U32(kEntrySignature);
  record.U16(zip64 ? kVersion64 : kVersion);  // made by
  PutCommon(entry, zip64, &record);
  record.U16(zip64 ? 4 + extra.bytes().size() : 0);
  record.U16(0);  // comment
  record.U16(0);  // disk
  record.U16(0);  // attributes
  record.U32(0);
  record.U32(Or64(entry.header_offset));
  record.Bytes(entry.name);
  if (zip64) {
    record.U16(kZip64Extra);
    record.U16(extra.bytes().size());
    record.Bytes(extra.bytes());
  }
  return record.bytes();
}

std::string FormatEnd(const Directory& directory, uint64_t end_offset) {
  Record record;
  const bool zip64 = directory.num_entries >= kCountIn64 || Needs64(directory.size_bytes) ||
                     Needs64(directory.offset);
  if (zip64) {
    record.U32(kEnd64Signature);
    record.U64(kEnd64Bytes - 12);  // of what follows
    record.U16(kVersion64);
    record.U16(kVersion64);
    record.U32(0);  // disks
    record.U32(0);
    record.U64(directory.num_entries);
    record.U64(directory.num_entries);
    record.U64(directory.size_bytes);
    record.U64(directory.offset);
    record.U32(kLocator64Signature);
    record.U32(0);
    record.U64(end_offset);
    record.U32(1);
  }
  const uint64_t count = std::min<uint64_t>(directory.num_entries, kCountIn64);
  record.U32(kEndSignature);
  record.U16(0);  // disks
  record.U16(0);
  record.U16(count);
  record.U16(count);
  record.U32(Or64(directory.size_bytes));
  record.U32(Or64(directory.offset));
  record.U16(0);  // comment
  return record.bytes();
}

}  // namespace

absl::Status ZipWriter::Add(absl::string_view name, absl::Span<const absl::string_view> parts,
                            bool deflate) {
  if (name.size() > std::numeric_limits<uint16_t>::max()) {
    return InvalidArgument("a name of ", name.size(), " bytes is too long for a zip archive");
  }
  Entry entry;
  entry.name = std::string(name);
  entry.header_offset = out_.size_bytes();
  const bool ascii = std::all_of(name.begin(), name.end(), absl::ascii_isascii);
  entry.flags = ascii ? 0 : kUtf8Flag;
  for (const absl::string_view part : parts) {
    entry.crc = Crc(part, entry.crc);
    entry.size_bytes += part.size();
  }
  entry.stored_bytes = entry.size_bytes;
  std::string deflated;
  if (deflate) {
    entry.method = kDeflated;
    INTERP_ASSIGN_OR_RETURN(deflated, Deflate(parts));
    entry.stored_bytes = deflated.size();
    INTERP_RETURN_IF_ERROR(out_.Append(FormatLocalHeader(entry)));
    INTERP_RETURN_IF_ERROR(out_.Append(deflated));
  } else {
    INTERP_RETURN_IF_ERROR(out_.Append(FormatLocalHeader(entry)));
    for (const absl::string_view part : parts) INTERP_RETURN_IF_ERROR(out_.Append(part));
  }
  directory_ += FormatDirectoryRecord(entry);
  ++num_entries_;
  return absl::OkStatus();
}

absl::Status ZipWriter::Finish() {
  const Directory directory{out_.size_bytes(), directory_.size(), num_entries_};
  INTERP_RETURN_IF_ERROR(out_.Append(directory_));
  return out_.Append(FormatEnd(directory, out_.size_bytes()));
}

}  // namespace interp
