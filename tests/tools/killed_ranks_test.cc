// Ranks that are killed. Skipped where there is no MPI.
//
//   INTERP_RANK_KILLS=100 build/release/tests/tools_tests --gtest_filter='KilledRanks*'
//
// kills a rank 100 times instead of 3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "tests/tools/rank_training.h"

namespace interp::testing {
namespace {

using ::testing::AnyOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// A launched command of several ranks, one of which was killed.
struct Killed {
  size_t victim = 0;
  bool in_time = false;  // it was killed before it ended
  // The launcher waits for nobody: see ExitCodeOf.
  bool launcher_hangs = false;
  std::string hangs = {};  // what the processes did when nothing had happened for long; else empty
  int exit_code = 0;
  std::string err = {};
};

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    std::istringstream text(Read(task.path() / "children"));
    for (pid_t child = 0; text >> child;) children.push_back(child);
  }
  return children;
}

pid_t LaunchRanks(int count, const std::vector<std::string>& arguments, const std::string& err) {
  const std::vector<std::string> all = RanksOf(count, arguments);
  const pid_t launcher = fork();
  if (launcher != 0) return launcher;
  std::vector<char*> argv = {const_cast<char*>(kMpirun)};
  for (const std::string& argument : all) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const bool opened =
      freopen("/dev/null", "w", stdout) != nullptr && freopen(err.c_str(), "w", stderr) != nullptr;
  if (opened) execv(kMpirun, argv.data());
  _exit(127);
}

// The letter of /proc/PID/stat; Z: it has ended.
char StateOf(pid_t pid) {
  const std::string stat = Read("/proc/" + std::to_string(pid) + "/stat");
  const size_t name = stat.rfind(") ");
  return name == std::string::npos ? 'Z' : stat[name + 2];
}

// What the threads of a process wait for, a line each.
std::string ThreadsOf(pid_t pid) {
  std::ostringstream text;
  std::error_code gone;
  const std::string process = "/proc/" + std::to_string(pid);
  for (const auto& task : std::filesystem::directory_iterator(process + "/task", gone)) {
    std::string stat = Read(task.path() / "stat");
    stat = stat.substr(0, stat.find(' ', stat.rfind(')') + 2));
    text << "  process " << pid << ", thread " << stat << ", in " << Read(task.path() / "wchan")
         << "\n";
  }
  return text.str();
}

// Waits for a launched command, however slow it is, as long as `log` grows. One that stands still
// for two minutes is ended, and Killed::hangs says what its processes did. Open MPI 4.1's mpirun
// may wait for ever when a rank is killed that is about to connect to it ("PMIX ERROR:
// UNREACHABLE"), with all ranks ended: that is the launcher's affair.
int ExitCodeOf(pid_t launcher, const std::string& log, Killed& killed) {
  constexpr std::chrono::seconds kStandsStill(120);
  constexpr std::chrono::seconds kWithoutRanks(20);
  const auto size_of_log = [&log] {
    std::error_code none;
    return std::filesystem::file_size(log, none);
  };
  auto size = size_of_log();
  auto since = std::chrono::steady_clock::now();
  auto had_ranks = since;
  int status = 0;
  while (waitpid(launcher, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto now = std::chrono::steady_clock::now();
    if (const auto grown = size_of_log(); grown != size) {
      size = grown;
      since = now;
    }
    const std::vector<pid_t> ranks = ChildrenOf(launcher);
    const auto lives = [](pid_t rank) { return StateOf(rank) != 'Z'; };
    if (std::any_of(ranks.begin(), ranks.end(), lives)) had_ranks = now;
    killed.launcher_hangs = now - had_ranks > kWithoutRanks;
    if (now - since < kStandsStill && !killed.launcher_hangs) continue;
    if (!killed.launcher_hangs) {
      killed.hangs = "the launcher:\n" + ThreadsOf(launcher) + "its ranks:\n";
      for (const pid_t rank : ranks) killed.hangs += ThreadsOf(rank);
    }
    for (const pid_t rank : ranks) kill(rank, SIGKILL);
    kill(launcher, SIGKILL);
    waitpid(launcher, &status, 0);
    break;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Kills `after` all ranks are there, however long the machine takes to start them.
Killed RunRanksAndKillOne(int count, const std::vector<std::string>& arguments,
                          const std::string& log, std::chrono::milliseconds after, size_t victim) {
  const TemporaryFolder folder;
  const std::string err = folder / "err";
  const pid_t launcher = LaunchRanks(count, arguments, err);
  const auto has_ended = [launcher] {
    siginfo_t info = {};
    return waitid(P_PID, launcher, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  };
  std::vector<pid_t> ranks;
  while (ranks.size() < static_cast<size_t>(count) && !has_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ranks = ChildrenOf(launcher);
  }
  std::this_thread::sleep_for(after);
  ranks = ChildrenOf(launcher);
  Killed killed{.victim = victim};
  if (victim < ranks.size() && StateOf(ranks[victim]) != 'Z') {
    killed.in_time = kill(ranks[victim], SIGKILL) == 0;
  }
  killed.exit_code = ExitCodeOf(launcher, log, killed);
  killed.err = Read(err);
  return killed;
}

// Whether the launcher has ended all for the rank that was killed, and says which it was. It does
// not name one that has not joined it yet.
bool IsNamed(const Killed& killed) {
  const std::string name = "rank " + std::to_string(killed.victim);
  EXPECT_THAT(killed.err, AnyOf(HasSubstr(name), HasSubstr("non-zero exit code")));
  return killed.err.find(name) != std::string::npos;
}

// At any moment: while ranks start, meet, train, write checkpoints or leave. Whatever is left, the
// next ones, another number of them, go on.
TEST(KilledRanks, AreResumedFromTheCheckpoint) {
  SKIP_WITHOUT_MPI();
  const char* const wanted = std::getenv("INTERP_RANK_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 3;
  const std::unique_ptr<Training> training = Training::OfClicks();
  std::vector<std::string> steps = {"--steps", std::to_string(400 * std::max(kills, 1))};
  ASSERT_EQ(RunInterp(training->Arguments("whole", steps)).exit_code, 0);
  steps.insert(steps.end(), {"--data-parallel", "--checkpoint", *training / "checkpoints",
                             "--checkpoint-every", "20", "--resume"});
  const std::vector<std::string> arguments = training->Arguments("killed", steps);
  std::mt19937 random(7);
  int in_time = 0;
  int named = 0;
  int launcher_hangs = 0;
  for (int i = 0; i < kills; ++i) {
    const int ranks = 2 + static_cast<int>(random() % 2);
    const Killed killed = RunRanksAndKillOne(ranks, arguments, *training / "killed.csv",
                                             std::chrono::milliseconds(random() % 1300),
                                             random() % static_cast<unsigned>(ranks));
    ASSERT_EQ(killed.hangs, "") << "kill " << i << " of rank " << killed.victim << ": "
                                << killed.err;
    launcher_hangs += killed.launcher_hangs ? 1 : 0;
    if (!killed.in_time || killed.launcher_hangs) continue;
    if (killed.exit_code == 0) {
      // It had left the others already, and all had been done.
      EXPECT_EQ(Losses(*training / "killed.csv").size(), Losses(*training / "whole.csv").size());
      continue;
    }
    ++in_time;
    named += IsNamed(killed) ? 1 : 0;
  }
  EXPECT_TRUE(named > 0 || in_time < 3) << named << " of " << in_time;
  RecordProperty("killed_in_time", in_time);
  RecordProperty("launcher_hangs", launcher_hangs);
  const CommandResult rest = RunRanks(2, arguments);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(Losses(*training / "killed.csv"),
              Pointwise(DoubleNear(1e-4), Losses(*training / "whole.csv")));
}

}  // namespace
}  // namespace interp::testing
