// The zip format, as zip_reader and zip_writer share it (PKWARE APPNOTE 6.3).
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace interp::zip {

// Signatures, sizes of the fixed parts of records, values of fields.
inline constexpr uint32_t kLocalSignature = 0x04034b50;
inline constexpr uint32_t kEntrySignature = 0x02014b50;
inline constexpr uint32_t kEndSignature = 0x06054b50;
inline constexpr uint32_t kEnd64Signature = 0x06064b50;
inline constexpr uint32_t kLocator64Signature = 0x07064b50;
inline constexpr size_t kLocalBytes = 30;
inline constexpr size_t kEntryBytes = 46;
inline constexpr size_t kEndBytes = 22;
inline constexpr size_t kEnd64Bytes = 56;
inline constexpr size_t kLocator64Bytes = 20;
inline constexpr uint16_t kZip64Extra = 1;
inline constexpr uint16_t kStored = 0;
inline constexpr uint16_t kDeflated = 8;
inline constexpr uint16_t kEncryptedFlag = 1;
inline constexpr uint16_t kUtf8Flag = 1 << 11;
inline constexpr uint16_t kVersion = 20;
inline constexpr uint16_t kVersion64 = 45;
inline constexpr uint32_t kIn64 = 0xffffffff;      // the value is in the zip64 extra field
inline constexpr uint16_t kCountIn64 = 0xffff;     // the same for the number of entries
inline constexpr uint16_t kFirstDay = 1 << 5 | 1;  // 1980-01-01

// Where the central directory lies.
struct Directory {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  uint64_t num_entries = 0;
};

// The checksum of `bytes`, continued from `crc`.
inline uint32_t Crc(absl::string_view bytes, uint32_t crc = 0) {
  return static_cast<uint32_t>(
      crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace interp::zip
