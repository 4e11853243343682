#include "core/io/file_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/escaping.h"

namespace interp {

namespace fs = std::filesystem;

absl::StatusOr<FileFolder> FileFolder::Open(const std::string& folder) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return NotFound("'", folder, "': ", error.message());
  if (!fs::is_directory(root, error)) return NotFound("'", folder, "' is not a folder");
  return FileFolder(root.string());
}

absl::StatusOr<std::string> FileFolder::Resolve(const std::string& path) const {
  const auto refuse = [&](absl::string_view why) {
    return absl::PermissionDeniedError(
        absl::StrCat("'", absl::Utf8SafeCEscape(path), "' ", why, " '", root_,
                     "', the folder that this program may use files in"));
  };
  if (path.empty()) return InvalidArgument("the path of a file is empty");
  if (path.find('\0') != std::string::npos) return refuse("holds a zero byte and is no file in");
  const fs::path root(root_);
  std::error_code error;
  // Behind what does not exist links are not followed yet: until nothing changes any more.
  fs::path file = fs::weakly_canonical(root / path, error);
  for (fs::path before; !error && file != before;) {
    before = file;
    file = fs::weakly_canonical(before, error);
  }
  if (error) return InvalidArgument("'", absl::Utf8SafeCEscape(path), "': ", error.message());
  const auto [rest, unused] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  if (rest != root.end()) return refuse("is outside of");
  // A link to what does not exist would be followed by who writes to it.
  if (fs::is_symlink(fs::symlink_status(file, error))) return refuse("is a broken link in");
  if (fs::exists(file, error) && !fs::is_regular_file(file, error)) {
    return InvalidArgument("'", absl::Utf8SafeCEscape(path), "' is not a regular file");
  }
  return file.string();
}

absl::StatusOr<std::string> FileFolder::ResolveForWriting(const std::string& path) const {
  INTERP_ASSIGN_OR_RETURN(std::string file, Resolve(path));
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  if (error) {
    return InvalidArgument("cannot make the folder of '", absl::Utf8SafeCEscape(path),
                           "': ", error.message());
  }
  return file;
}

}  // namespace interp
