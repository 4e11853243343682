// Control groups of this process (cgroups, versions 1 and 2): what containers limit.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace interp {

// The folders in which the groups that limit what `controller` ("cpu", "memory") grants may have
// their files, those around a group included. In a container the path may name folders that it does
// not see; the one that is mounted is then its own. `root` stands before /proc and /sys, for tests.
std::vector<std::string> ControlGroupFolders(const std::string& root, absl::string_view controller);

// The words of a small file of the kernel; none when it cannot be read.
std::vector<std::string> WordsOfFile(const std::string& path);

}  // namespace interp
