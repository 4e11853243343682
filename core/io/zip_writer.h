// Writes zip archives, as much as .npz needs: stored or deflated entries, zip64 where sizes ask for
// it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/io/file.h"
#include "core/status.h"

namespace interp {

// Writes an archive from front to back. Times are fixed, so that equal content gives equal files.
class ZipWriter {
 public:
  // `out` must outlive the object.
  explicit ZipWriter(FileWriter& out) : out_(out) {}

  // Adds an entry whose content is `parts`, one after the other.
  absl::Status Add(absl::string_view name, absl::Span<const absl::string_view> parts, bool deflate);
  // Writes the central directory. Nothing may follow.
  absl::Status Finish();

 private:
  FileWriter& out_;
  std::string directory_;
  uint64_t num_entries_ = 0;
};

}  // namespace interp
