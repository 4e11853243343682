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

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// A launched command of several ranks, one of which was killed.
struct Killed {
  size_t victim = 0;
  bool in_time = false;  // it was killed before it ended
  bool hung = false;
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

// -1: it hangs, and was killed.
int ExitCodeOf(pid_t launcher) {
  constexpr std::chrono::seconds kHangs(120);
  const auto deadline = std::chrono::steady_clock::now() + kHangs;
  int status = 0;
  while (waitpid(launcher, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (std::chrono::steady_clock::now() < deadline) continue;
    for (const pid_t rank : ChildrenOf(launcher)) kill(rank, SIGKILL);
    kill(launcher, SIGKILL);
    waitpid(launcher, &status, 0);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Killed RunRanksAndKillOne(int count, const std::vector<std::string>& arguments,
                          std::chrono::milliseconds after, size_t victim) {
  const TemporaryFolder folder;
  const std::string err = folder / "err";
  const pid_t launcher = LaunchRanks(count, arguments, err);
  std::this_thread::sleep_for(after);
  const std::vector<pid_t> ranks = ChildrenOf(launcher);
  Killed killed{.victim = victim};
  if (victim < ranks.size()) killed.in_time = kill(ranks[victim], SIGKILL) == 0;
  killed.exit_code = ExitCodeOf(launcher);
  killed.hung = killed.exit_code < 0;
  killed.err = Read(err);
  return killed;
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
  for (int i = 0; i < kills; ++i) {
    const int ranks = 2 + static_cast<int>(random() % 2);
    const Killed killed =
        RunRanksAndKillOne(ranks, arguments, std::chrono::milliseconds(100 + random() % 1200),
                           random() % static_cast<unsigned>(ranks));
    ASSERT_FALSE(killed.hung) << "kill " << i << ": " << killed.err;
    if (!killed.in_time) continue;
    ++in_time;
    EXPECT_NE(killed.exit_code, 0) << "kill " << i;
    EXPECT_THAT(killed.err, HasSubstr("rank " + std::to_string(killed.victim))) << "kill " << i;
  }
  RecordProperty("killed_in_time", in_time);
  const CommandResult rest = RunRanks(2, arguments);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(Losses(*training / "killed.csv"),
              Pointwise(DoubleNear(1e-4), Losses(*training / "whole.csv")));
}

}  // namespace
}  // namespace interp::testing
