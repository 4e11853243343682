// Files as bytes: read whole, map, replace atomically.
//
// Errors quote the path and give the system's reason ("cannot open 'a.npy': No such file or
// directory"): NotFound, PermissionDenied, ... as absl maps errno.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

// The content of a file, pipe or device. Error: ResourceExhausted for more than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes = size_t{1} << 31);

// A regular file mapped into memory, copy-on-write. Pages are read when touched and shared by all
// processes that map the file, until somebody writes into one: who does so gets a copy of that
// page, and the file stays as it is. Reading a page that somebody has cut off the file in the
// meantime kills the process (SIGBUS), so files in use are to be replaced (FileWriter), not
// overwritten. Thread-safety: like an array of char.
class MappedFile {
 public:
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return {data_, size_bytes_}; }
  // The same bytes, to be written to.
  char* mutable_data() const { return data_; }

 private:
  MappedFile(char* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  char* data_;  // null for an empty file
  size_t size_bytes_;
};

// Writes a file beside its final place and renames it there on Commit, so that readers see the old
// file or the new one, never a part. The new one has the old one's rights of access. Without Commit
// nothing remains. A path that names a device or a pipe is written directly.
class FileWriter {
 public:
  static absl::StatusOr<FileWriter> Create(const std::string& path);
  ~FileWriter();
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;

  absl::Status Append(absl::string_view bytes);
  // All that was appended so far.
  uint64_t size_bytes() const { return size_bytes_; }
  // All that was appended is on the disk: Commit fails for no lack of room. Where several files are
  // to appear together, all are flushed before the first one is committed.
  absl::Status Flush();
  // Flushes and renames. Nothing may follow.
  absl::Status Commit();

 private:
  FileWriter(int fd, std::string path, std::string temporary)
      : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}

  absl::Status Write(absl::string_view bytes);

  int fd_;  // -1 once closed
  std::string path_;
  std::string temporary_;  // empty: `path_` is written directly
  std::string pending_;    // not yet written: small pieces are gathered
  uint64_t size_bytes_ = 0;
};

}  // namespace interp
