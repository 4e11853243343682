// `interp run` and `interp train` as several processes under mpirun. Skipped where there is no MPI.
//
//   INTERP_RANK_KILLS=100 build/release/tests/tools_tests --gtest_filter='Ranks.*Killed*'
//
// kills a rank 100 times instead of 3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "core/io/file.h"
#include "core/io/npz.h"
#include "tests/testing/command.h"
#include "tests/testing/slow.h"
#include "tools/examples/digits.h"

namespace interp::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointwise;

constexpr char kMpirun[] = "/usr/bin/mpirun";

bool HasMpi() {
  return std::filesystem::exists(INTERP_BINARY_DIR "/libinterp_mpi.so") &&
         std::filesystem::exists(kMpirun);
}

#define SKIP_WITHOUT_MPI()                                                                      \
  if (!HasMpi()) {                                                                              \
    GTEST_SKIP() << "no MPI: install openmpi-bin and libopenmpi-dev, then configure";           \
  }                                                                                             \
  if (kSlow) {                                                                                  \
    GTEST_SKIP() << "MPI itself is not built for sanitizers, which report its leaks and races"; \
  }

std::vector<std::string> RanksOf(int count, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"--allow-run-as-root", "--oversubscribe", "-n"};
  all.push_back(std::to_string(count));
  all.emplace_back(INTERP_BINARY_DIR "/interp");
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

CommandResult RunRanks(int count, const std::vector<std::string>& arguments) {
  return RunProgram(kMpirun, RanksOf(count, arguments));
}

std::string Read(const std::string& path) { return ReadFile(path).value_or("no file"); }

// The column behind the step of a log.
std::vector<double> Losses(const std::string& path) {
  std::istringstream lines(Read(path));
  std::string line;
  std::getline(lines, line);
  std::vector<double> losses;
  while (std::getline(lines, line)) losses.push_back(std::atof(line.c_str() + line.find(',') + 1));
  return losses;
}

// A training program with its data, in a folder.
class Training {
 public:
  // Clicks: an embedding whose gradient is sparse, and two layers.
  static std::unique_ptr<Training> OfClicks() {
    auto training = std::make_unique<Training>();
    const std::string vars =
        "program version=0\n"
        "block 0\n"
        "  var table float32[50,8] param\n"
        "  var w1 float32[8,6] param\n"
        "  var w2 float32[6,1] param\n";
    std::ofstream(*training / "forward.txt")
        << vars
        << "  var ids int64[-1] check_feed\n"
           "  var y float32[-1,1] check_feed\n"
           "  var e float32[-1,8]\n"
           "  var h float32[-1,6]\n"
           "  var r float32[-1,6]\n"
           "  var p float32[-1,1]\n"
           "  var s float32[-1,1]\n"
           "  var loss float32[1]\n"
           "  lookup_table_v2(W=table, Ids=ids) -> (Out=e) {is_sparse=true, padding_idx=-1}\n"
           "  matmul_v2(X=e, Y=w1) -> (Out=h)\n"
           "  tanh(X=h) -> (Out=r)\n"
           "  matmul_v2(X=r, Y=w2) -> (Out=p)\n"
           "  sigmoid_cross_entropy_with_logits(X=p, Label=y) -> (Out=s)\n"
           "  mean(X=s) -> (Out=loss)\n";
    std::ofstream(*training / "startup.txt")
        << vars << Uniform("table", "50,8") << Uniform("w1", "8,6") << Uniform("w2", "6,1");
    std::vector<int64_t> ids;
    std::vector<float> labels;
    for (int i = 0; i < 200; ++i) {
      ids.push_back(i * 7 % 50);
      labels.push_back(static_cast<float>(ids.back() % 3 == 0));
    }
    training->Prepare(
        ".txt", "loss", "sgd:learning_rate=0.5",
        {{"ids", Tensor::Of<int64_t>({200}, ids)}, {"y", Tensor::Of<float>({200, 1}, labels)}});
    return training;
  }

  static std::unique_ptr<Training> OfLeNet() {
    auto training = std::make_unique<Training>();
    EXPECT_EQ(RunProgram("examples/train_lenet", {"--save", *training / ""}).exit_code, 0);
    const auto digits = examples::DrawDigits(200, /*seed=*/1);
    EXPECT_TRUE(digits.ok());
    training->Prepare(".pdmodel", "mean_0.tmp_0", "momentum:learning_rate=0.01",
                      {{"image", digits->images}, {"label", digits->labels}});
    return training;
  }

  std::string operator/(const std::string& name) const { return folder_ / name; }

  // Of one command line; files that it writes start with `name`.
  std::vector<std::string> Arguments(const std::string& name,
                                     const std::vector<std::string>& more) const {
    const std::string prefix = *this / name;
    std::vector<std::string> all = {"train",        *this / "train.pdmodel",
                                    "--startup",    *this / "first.pdmodel",
                                    "--data",       *this / "data.npz",
                                    "--fetch",      loss_,
                                    "--batch-size", "17",
                                    "--threads",    "1",
                                    "--log",        prefix + ".csv",
                                    "--save",       prefix + ".npz"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

 private:
  static std::string Uniform(const std::string& name, const std::string& shape) {
    return "  uniform_random() -> (Out=" + name + ") {dtype=5, shape=longs:[" + shape +
           "], min=-0.5, max=0.5, seed=" + std::to_string(name.size()) + "}\n";
  }
  // With forward.EXTENSION and startup.EXTENSION, which are there.
  void Prepare(const std::string& extension, const std::string& loss, const std::string& optimizer,
               const std::vector<NamedTensor>& data) {
    loss_ = loss;
    EXPECT_TRUE(WriteNpz(*this / "data.npz", data).ok());
    const CommandResult made =
        RunInterp({"backward", *this / ("forward" + extension), "--loss", loss, "--optimizer",
                   optimizer, "--startup-from", *this / ("startup" + extension), "--startup",
                   *this / "first.pdmodel", "-o", *this / "train.pdmodel"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }

  TemporaryFolder folder_;
  std::string loss_;
};

void ExpectLossesOfOneProcess(const Training& training, const std::vector<std::string>& steps) {
  const CommandResult one = RunInterp(training.Arguments("one", steps));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const std::vector<double> losses = Losses(training / "one.csv");
  ASSERT_THAT(losses, Not(IsEmpty()));
  std::vector<std::string> together = steps;
  together.insert(together.end(),
                  {"--data-parallel", "--bucket-size", "1K", "--check-collectives"});
  for (const int ranks : {1, 2, 4}) {
    const std::string name = std::to_string(ranks);
    for (const std::string again : {"a", "b"}) {
      const CommandResult many = RunRanks(ranks, training.Arguments(name + again, together));
      ASSERT_EQ(many.exit_code, 0) << many.err;
      EXPECT_THAT(many.out, HasSubstr("steps"));
      EXPECT_EQ(many.out.find("steps"), many.out.rfind("steps")) << many.out;  // rank 0 alone
    }
    EXPECT_THAT(Losses(training / (name + "a.csv")), Pointwise(DoubleNear(1e-5), losses)) << ranks;
    EXPECT_EQ(Read(training / (name + "a.csv")), Read(training / (name + "b.csv")));
    EXPECT_EQ(Read(training / (name + "a.npz")), Read(training / (name + "b.npz")));
  }
}

// 200 samples in batches of 17: the last one of an epoch has 13, which 2 and 4 do not divide.
TEST(Ranks, TrainClicksAsOneProcessDoes) {
  SKIP_WITHOUT_MPI();
  ExpectLossesOfOneProcess(*Training::OfClicks(), {"--epochs", "2"});
}

TEST(Ranks, TrainLeNetAsOneProcessDoes) {
  SKIP_WITHOUT_MPI();
  ExpectLossesOfOneProcess(*Training::OfLeNet(), {"--steps", "6"});
}

TEST(Ranks, TrainEachOnItsOwnPart) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  const auto arguments = [&](const std::string& name, const std::string& part) {
    std::vector<std::string> more = {"--num-parts", "2"};
    if (!part.empty()) more.insert(more.end(), {"--part-index", part});
    return training->Arguments(name, more);
  };
  const CommandResult many = RunRanks(2, arguments("rank{rank}", ""));
  ASSERT_EQ(many.exit_code, 0) << many.err;
  for (const std::string part : {"0", "1"}) {
    ASSERT_EQ(RunInterp(arguments("part" + part, part)).exit_code, 0);
    EXPECT_EQ(Read(*training / ("rank" + part + ".csv")),
              Read(*training / ("part" + part + ".csv")));
  }
}

TEST(Ranks, ShowTheirCommunicationInTraces) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  const CommandResult result =
      RunRanks(2, training->Arguments("traced", {"--data-parallel", "--steps", "3", "--trace",
                                                 *training / "trace{rank}.json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const std::string rank : {"0", "1"}) {
    const std::string trace = Read(*training / ("trace" + rank + ".json"));
    EXPECT_THAT(trace, HasSubstr("c_bucket_allreduce on ring 0, number "));
    EXPECT_THAT(trace, HasSubstr("c_allreduce_rows on ring 0, number "));
    EXPECT_THAT(trace, HasSubstr("\"ranks of ring 0\""));
  }
}

TEST(Ranks, RunAProgramWithCollectivesEachOnItsOwnFiles) {
  SKIP_WITHOUT_MPI();
  const TemporaryFolder folder;
  std::ofstream(folder / "sum.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var x float32[2] check_feed\n"
                                       "  var y float32[2]\n"
                                       "  var z float32[2]\n"
                                       "  c_allreduce_sum(X=x) -> (Out=y) {ring_id=0}\n"
                                       "  c_allreduce_sum(X=x) -> (Out=z) {ring_id=4}\n";
  for (const int rank : {0, 1, 2}) {
    const auto value = static_cast<float>(rank + 1);
    ASSERT_TRUE(WriteNpz(folder / ("x" + std::to_string(rank) + ".npz"),
                         {{"x", Tensor::Of<float>({2}, {value, 10 * value})}})
                    .ok());
  }
  const CommandResult result = RunRanks(
      3, {"run", folder / "sum.txt", "--feed", folder / "x{rank}.npz", "--fetch", "y,z", "--ring",
          "4=0,2", "--ring", "4=1", "--out", folder / "out{rank}.npz", "--check-collectives"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const int rank : {0, 1, 2}) {
    const auto out = ReadNpz(folder / ("out" + std::to_string(rank) + ".npz"), 1 << 20);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].second.data<float>()[1], 60);
    EXPECT_EQ((*out)[1].second.data<float>()[0], rank == 1 ? 2 : 4);
  }
}

TEST(Ranks, ErrorOfOneEndsAllAndIsSaid) {
  SKIP_WITHOUT_MPI();
  const TemporaryFolder folder;
  std::ofstream(folder / "sum.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var x float32[2] check_feed\n"
                                       "  var y float32[2]\n"
                                       "  c_allreduce_sum(X=x) -> (Out=y) {ring_id=0}\n";
  ASSERT_TRUE(WriteNpz(folder / "x0.npz", {{"x", Tensor::Of<float>({2}, {1, 2})}}).ok());
  const CommandResult result =
      RunRanks(2, {"run", folder / "sum.txt", "--feed", folder / "x{rank}.npz", "--fetch", "y"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1: "));
  EXPECT_THAT(result.err, HasSubstr("x1.npz"));
}

TEST(Ranks, RefuseRingsThatCannotBe) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  for (const std::string ring : {"3=0,0", "3=0,2", "0=0,1"}) {
    const CommandResult result =
        RunRanks(2, training->Arguments("ring", {"--steps", "1", "--ring", ring}));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("--ring: '" + ring + "'"));
  }
}

TEST(Ranks, OutputsAreCheckedBeforeTheFirstStep) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  std::filesystem::create_directory(*training / "t0");
  const CommandResult result = RunRanks(
      2, training->Arguments(
             "late", {"--data-parallel", "--steps", "3", "--trace", *training / "t{rank}/x.json"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1: "));
}

// Who fails after the run waits until the others have written what came of it.
TEST(Ranks, FailureAfterTheRunLosesNothing) {
  SKIP_WITHOUT_MPI();
  const TemporaryFolder folder;
  std::ofstream(folder / "sum.txt") << "program version=0\nblock 0\n  var x float32[2] check_feed\n"
                                       "  var y float32[2]\n"
                                       "  c_allreduce_sum(X=x) -> (Out=y) {ring_id=0}\n";
  ASSERT_TRUE(WriteNpz(folder / "x.npz", {{"x", Tensor::Of<float>({2}, {1, 2})}}).ok());
  ASSERT_TRUE(WriteNpz(folder / "e0.npz", {{"y", Tensor::Of<float>({2}, {2, 4})}}).ok());
  ASSERT_TRUE(WriteNpz(folder / "e1.npz", {{"y", Tensor::Of<float>({2}, {7, 7})}}).ok());
  for (int times = 0; times < 5; ++times) {
    std::filesystem::remove(folder / "out.npz");
    const CommandResult result =
        RunRanks(2, {"run", folder / "sum.txt", "--feed", folder / "x.npz", "--fetch", "y",
                     "--expect", folder / "e{rank}.npz", "--out", folder / "out.npz"});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_TRUE(std::filesystem::exists(folder / "out.npz"));
  }
}

TEST(Ranks, HaveToAgreeOnTheirData) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  for (const int rank : {0, 1}) {
    const int64_t count = rank == 0 ? 60 : 40;
    ASSERT_TRUE(WriteNpz(*training / ("other" + std::to_string(rank) + ".npz"),
                         {{"ids", Tensor::Of<int64_t>({count}, std::vector<int64_t>(count, 3))},
                          {"y", Tensor::Of<float>({count, 1}, std::vector<float>(count, 1))}})
                    .ok());
  }
  std::vector<std::string> arguments = training->Arguments("differ", {"--data-parallel"});
  *std::find(arguments.begin(), arguments.end(), *training / "data.npz") =
      *training / "other{rank}.npz";
  const CommandResult result = RunRanks(2, arguments);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("this rank has 40 samples"));
  EXPECT_THAT(result.err, HasSubstr("rank 0 has 60 samples"));
}

TEST(Ranks, TrainOnSimulatedDevices) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfLeNet();
  const CommandResult result = RunRanks(
      2, training->Arguments("sim", {"--data-parallel", "--steps", "2", "--place", "sim:0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// To MPI alone a message may be shorter than its place.
TEST(Ranks, MessagesOfAnotherSizeAreErrors) {
  SKIP_WITHOUT_MPI();
  const TemporaryFolder folder;
  for (const int rank : {0, 1}) {
    const std::string size = rank == 0 ? "2" : "4";
    std::ofstream(folder / ("p" + std::to_string(rank) + ".txt"))
        << "program version=0\nblock 0\n  var x float32[" << size
        << "] check_feed\n  var y float32[" << size
        << "]\n  c_broadcast(X=x) -> (Out=y) {ring_id=0, root=0}\n";
  }
  const CommandResult result = RunRanks(2, {"run", folder / "p{rank}.txt", "--feed", "x=random",
                                            "--fetch", "y", "--comm-timeout", "20s"});
  EXPECT_NE(result.exit_code, 0) << result.out;
}

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
TEST(Ranks, GoOnFromTheCheckpointWhenOneIsKilled) {
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

TEST(Ranks, AreMissedWithinTheTimeAndNamed) {
  SKIP_WITHOUT_MPI();
  // Rank 1 runs another program, without the collective, and does not end by itself.
  const TemporaryFolder folder;
  const std::string head =
      "program version=0\n"
      "block 0\n"
      "  var x float32[2] check_feed\n"
      "  var y float32[2]\n";
  std::ofstream(folder / "program0.txt") << head << "  c_allreduce_sum(X=x) -> (Out=y)\n";
  std::ofstream(folder / "program1.txt")
      << head << "  recv_v2() -> (Out=y) {peer=0, dtype=5, out_shape=[2]}\n";
  const CommandResult result = RunRanks(2, {"run", folder / "program{rank}.txt", "--feed",
                                            "x=random", "--fetch", "y", "--comm-timeout", "500ms"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("has waited 500 ms for rank"));
}

}  // namespace
}  // namespace interp::testing
