#include "tests/testing/command.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

namespace interp::testing {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// In the child: becomes the program, with its output in files.
[[noreturn]] void Become(const std::string& program, const std::vector<std::string>& arguments,
                         const std::string& out, const std::string& err) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // A shell that runs the tests in the background has Ctrl-C ignored.
  signal(SIGINT, SIG_DFL);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
  execv(program.c_str(), argv.data());
  _exit(127);
}

// Runs a program; `meanwhile` gets the child and the path of its standard error.
CommandResult RunAnd(const std::string& program, const std::vector<std::string>& arguments,
                     const std::string& out,
                     const std::function<void(pid_t, const std::string&)>& meanwhile) {
  const bool anywhere = program.starts_with('/');
  const std::string path = anywhere ? program : std::string(INTERP_BINARY_DIR) + "/" + program;
  const TemporaryFolder folder;
  const std::string captured = folder / "out";
  const std::string err = folder / "err";
  const pid_t child = fork();
  if (child == 0) Become(path, arguments, out.empty() ? captured : out, err);
  meanwhile(child, err);
  int status = 0;
  waitpid(child, &status, 0);
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = ReadAll(captured),
          .err = ReadAll(err)};
}

}  // namespace

CommandResult RunProgram(const std::string& program, const std::vector<std::string>& arguments,
                         const std::string& out) {
  return RunAnd(program, arguments, out, [](pid_t, const std::string&) {});
}

CommandResult RunInterp(const std::vector<std::string>& arguments, const std::string& out) {
  return RunProgram("interp", arguments, out);
}

CommandResult RunInterpAndSignal(const std::vector<std::string>& arguments, const std::string& text,
                                 int signal) {
  return RunAnd("interp", arguments, "", [&](pid_t child, const std::string& err) {
    while (ReadAll(err).find(text) == std::string::npos) {
      // A child that has ended will show nothing more.
      siginfo_t info = {};
      if (waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0) return;
      sched_yield();
    }
    kill(child, signal);
  });
}

CommandResult RunProgramAnd(const std::string& program, const std::vector<std::string>& arguments,
                            const std::function<void(pid_t, const std::string&)>& meanwhile) {
  return RunAnd(program, arguments, "", meanwhile);
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "interp_test_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace interp::testing
