// FileFolder: the one folder in which ops that read and write files (save, load and their like) may
// do so. A program is not trusted with the file system of who runs it.
#pragma once

#include <string>
#include <utility>

#include "core/status.h"

namespace interp {

// Thread-safety: like a const string.
class FileFolder {
 public:
  // NotFound where `folder` is none.
  static absl::StatusOr<FileFolder> Open(const std::string& folder);

  // The file that a program means by `path`: a relative one starts in the folder, an absolute one
  // must lie in it, links followed. PermissionDenied for one outside.
  absl::StatusOr<std::string> Resolve(const std::string& path) const;
  // The same for a file to be written: the folders that it lacks are made.
  absl::StatusOr<std::string> ResolveForWriting(const std::string& path) const;

 private:
  explicit FileFolder(std::string root) : root_(std::move(root)) {}

  std::string root_;  // canonical
};

}  // namespace interp
