// FileLock: what a file stands for belongs to one process at a time.
#pragma once

#include <string>

#include "core/status.h"

namespace interp {

// Held while the object lives. The system releases it when the process ends, however it ends.
class FileLock {
 public:
  // Makes `path`, an empty file, when it is missing; the file stays. Errors: FailedPrecondition
  // when another lock on it is held, of this process or another; those of the file system.
  static absl::StatusOr<FileLock> Take(const std::string& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;  // -1: moved away
};

}  // namespace interp
