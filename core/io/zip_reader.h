// Reads zip archives, as much as .npz needs: stored and deflated entries, zip64, no encryption.
//
// Archives are untrusted. Everything an entry claims is checked against the file before memory is
// allocated: entries lie within the archive and do not overlap, and a deflated entry is at most
// 1032 times its compressed size (more is impossible), so that an archive of n bytes never takes
// more than 1032 n. Memory grows with the data extracted, so that a false claim costs nothing.
// Errors name the entry and the byte offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/buffer.h"
#include "core/status.h"

namespace interp {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t size_bytes = 0;     // once extracted
  uint64_t header_offset = 0;  // in the archive
  absl::string_view data;      // as stored, a part of the archive
};

// The entries in the order of the central directory, folders left out.
absl::StatusOr<std::vector<ZipEntry>> ListZip(absl::string_view archive);

// The content of an entry, with its checksum verified.
absl::StatusOr<BufferRef> ExtractZip(const ZipEntry& entry);

}  // namespace interp
