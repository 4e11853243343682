#include "core/machine/control_groups.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"

namespace interp {
namespace {

void AddLevels(const std::string& mount, std::string path, std::vector<std::string>& folders) {
  while (true) {
    folders.push_back(mount + path);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

std::vector<std::string> WordsOfFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, /*max_bytes=*/1 << 16);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

std::vector<std::string> ControlGroupFolders(const std::string& root,
                                             absl::string_view controller) {
  // One line a hierarchy, "ID:CONTROLLERS:PATH"; version 2 has no controllers.
  const absl::StatusOr<std::string> groups = ReadFile(root + "/proc/self/cgroup", 1 << 20);
  if (!groups.ok()) return {};
  std::vector<std::string> folders;
  for (const absl::string_view line : absl::StrSplit(*groups, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (!absl::c_linear_search(controllers, controller) && !fields[1].empty()) continue;
    const std::string joined = absl::StrCat("/", fields[1]);
    for (const std::string& mount :
         {std::string(), std::string("/unified"), absl::StrCat("/", controller), joined}) {
      AddLevels(absl::StrCat(root, "/sys/fs/cgroup", mount), fields[2] == "/" ? "" : fields[2],
                folders);
    }
  }
  return folders;
}

}  // namespace interp
