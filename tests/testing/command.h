// Runs programs of this build as a user would.
#pragma once

#include <string>
#include <vector>

namespace interp::testing {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Runs a program of this build, by its path below the build folder, with these arguments, which
// reach it as they are. A program killed by a signal has exit code -1.
CommandResult RunProgram(const std::string& program, const std::vector<std::string>& arguments);
// The same for `interp`.
CommandResult RunInterp(const std::vector<std::string>& arguments);

// A new empty folder that is removed when the object goes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // The path of `name` in the folder.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace interp::testing
