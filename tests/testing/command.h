// Runs programs of this build as a user would.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace interp::testing {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Runs a program of this build, by its path below the build folder, or any by its full path, with
// these arguments, which reach it as they are. A program killed by a signal has exit code -1. With
// `out` its standard output goes to that file.
CommandResult RunProgram(const std::string& program, const std::vector<std::string>& arguments,
                         const std::string& out = "");
// The same for `interp`.
CommandResult RunInterp(const std::vector<std::string>& arguments, const std::string& out = "");

// Runs `interp` and sends it `signal` as soon as its standard error holds `text`.
CommandResult RunInterpAndSignal(const std::vector<std::string>& arguments, const std::string& text,
                                 int signal);
// Runs a program as RunProgram does, and `meanwhile` with its process and the path of its standard
// error.
CommandResult RunProgramAnd(const std::string& program, const std::vector<std::string>& arguments,
                            const std::function<void(pid_t, const std::string&)>& meanwhile);

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
