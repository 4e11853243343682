// `interp run` and `interp train` as several processes under mpirun. Skipped where there is no MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/tools/rank_training.h"

namespace interp::testing {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointwise;

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

TEST(Ranks, ComputeTheirSharesInMicroBatches) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  ASSERT_EQ(RunInterp(training->Arguments("one", {"--steps", "8"})).exit_code, 0);
  const std::vector<std::string> parts = {"--steps",         "8", "--data-parallel",
                                          "--micro-batches", "3", "--check-collectives"};
  for (const std::string again : {"a", "b"}) {
    const CommandResult many = RunRanks(2, training->Arguments(again, parts));
    ASSERT_EQ(many.exit_code, 0) << many.err;
  }
  EXPECT_THAT(Losses(*training / "a.csv"),
              Pointwise(DoubleNear(1e-5), Losses(*training / "one.csv")));
  EXPECT_EQ(Read(*training / "a.npz"), Read(*training / "b.npz"));
}

// Network namespaces with a host's name each.
TEST(Ranks, TrainOnSeveralHosts) {
  SKIP_WITHOUT_MPI();
  const bool has_hosts = geteuid() == 0 && std::filesystem::exists("/usr/sbin/ip") &&
                         RunProgram("/usr/bin/unshare", {"--net", "--uts", "true"}).exit_code == 0;
  if (!has_hosts) GTEST_SKIP() << "no hosts: run as root, with iproute2";
  const std::unique_ptr<Training> training = Training::OfClicks();
  const std::vector<std::string> one = training->Arguments("one", {"--steps", "8"});
  ASSERT_EQ(RunInterp(one).exit_code, 0);
  std::vector<std::string> arguments = {INTERP_SOURCE_DIR "/tests/tools/on_hosts.sh", "3",
                                        INTERP_BINARY_DIR "/interp"};
  for (const std::string& argument :
       training->Arguments("many", {"--steps", "8", "--data-parallel"})) {
    arguments.push_back(argument);
  }
  const CommandResult many = RunProgram("/bin/bash", arguments);
  ASSERT_EQ(many.exit_code, 0) << many.err;
  EXPECT_THAT(Losses(*training / "many.csv"),
              Pointwise(DoubleNear(1e-5), Losses(*training / "one.csv")));
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
  WriteSumProgram(folder / "sum.txt");
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
  for (const std::string ring : {"3=0,0", "3=0,2", "0=2"}) {
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
  WriteSumProgram(folder / "sum.txt");
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

TEST(Ranks, HaveToAgreeOnTheirPart) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  const auto with_part = [&](const std::string& part) {
    return training->Arguments(
        "part", {"--data-parallel", "--steps", "2", "--num-parts", "2", "--part-index", part});
  };
  std::vector<std::string> both = RanksOf(1, with_part("0"));
  both.insert(both.end(), {":", "-n", "1", INTERP_BINARY_DIR "/interp"});
  for (const std::string& argument : with_part("1")) both.push_back(argument);
  const CommandResult result = RunProgram(kMpirun, both);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("this rank has 200 samples, part 1 of 2,"));
  EXPECT_THAT(result.err, HasSubstr("rank 0 has 200 samples, part 0 of 2,"));
}

// Before rank 0 says what they are: one of the ranks has one more.
TEST(Ranks, HaveToAgreeOnTheirParameters) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  std::filesystem::copy_file(*training / "train.pdmodel", *training / "train0.pdmodel");
  std::string forward = Read(*training / "forward.txt");
  forward.insert(forward.find("  var table"), "  var extra float32[4000] param\n");
  std::ofstream(*training / "more.txt") << forward;
  const CommandResult made =
      RunInterp({"backward", *training / "more.txt", "--loss", "loss", "--optimizer",
                 "sgd:learning_rate=0.5", "-o", *training / "train1.pdmodel"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::vector<std::string> arguments = training->Arguments("differ", {"--data-parallel"});
  *std::find(arguments.begin(), arguments.end(), *training / "train.pdmodel") =
      *training / "train{rank}.pdmodel";
  const CommandResult result = RunRanks(2, arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("5 parameters and states"));
  EXPECT_THAT(result.err, HasSubstr("rank 0 has 200 samples"));
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
                                            "x=random", "--fetch", "y", "--comm-timeout", "5s"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("has waited 5000 ms for rank"));
}

// Waits until `log` has a step, or the launcher has ended.
bool HasStep(const std::string& log, pid_t launcher) {
  siginfo_t info = {};
  while (Losses(log).empty()) {
    if (waitid(P_PID, launcher, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::vector<pid_t> RanksUnder(pid_t launcher) {
  std::vector<pid_t> ranks;
  const std::string tasks = "/proc/" + std::to_string(launcher) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::istringstream text(Read(task.path() / "children"));
    for (pid_t rank = 0; text >> rank;) ranks.push_back(rank);
  }
  return ranks;
}

// mpirun makes of both signals SIGTERM for each rank, and a kill a second later; here 5, as disks
// may be busy.
TEST(Ranks, EndAfterTheSameStepWhenInterrupted) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  for (const bool one_rank : {true, false}) {
    const std::string name = one_rank ? "one" : "all";
    const std::string folder = *training / (name + "_checkpoints");
    const std::vector<std::string> arguments =
        training->Arguments(name, {"--data-parallel", "--steps", "100000000", "--checkpoint",
                                   folder, "--checkpoint-every", "1000000000"});
    std::vector<std::string> launch = {"--mca", "odls_base_sigkill_timeout", "5"};
    for (std::string& word : RanksOf(2, arguments)) launch.push_back(std::move(word));
    const CommandResult result =
        RunProgramAnd(kMpirun, launch, [&](pid_t launcher, const std::string&) {
          if (!HasStep(*training / (name + ".csv"), launcher)) return;
          kill(one_rank ? RanksUnder(launcher).at(1) : launcher, SIGINT);
        });
    // mpirun that was interrupted itself says 1.
    EXPECT_EQ(result.exit_code, one_rank ? 130 : 1) << result.err;
    const std::string step = std::to_string(Losses(*training / (name + ".csv")).size());
    const std::string end =
        absl::StrCat("train.pdmodel: interrupted after step ", step, "; --resume goes on");
    EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1: "), HasSubstr(end)));
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(folder, "/step-", step))) << result.err;
  }
}

// A process that is stopped as it starts: the others do not wait for it in MPI for ever.
TEST(Ranks, AreMissedWhenTheyDoNotCome) {
  SKIP_WITHOUT_MPI();
  const std::unique_ptr<Training> training = Training::OfClicks();
  std::vector<std::string> both =
      RanksOf(1, training->Arguments("late", {"--data-parallel", "--comm-timeout", "500ms"}));
  both.insert(both.end(), {":", "-n", "1", "/bin/sleep", "100"});
  const CommandResult result = RunProgram(kMpirun, both);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("not all ranks have met within 10000 ms"));
}

TEST(Ranks, DoNotWriteOneFileSideBySide) {
  SKIP_WITHOUT_MPI();
  const TemporaryFolder folder;
  WriteSumProgram(folder / "sum.txt");
  const std::vector<std::string> commands[] = {
      {"compile", folder / "sum.txt", "--feed", "x", "--fetch", "y"},
      {"pack", folder / ""},
      {"backward", folder / "sum.txt", "--loss", "y", "--optimizer", "sgd"}};
  for (std::vector<std::string> arguments : commands) {
    arguments.insert(arguments.end(), {"-o", folder / "out.rec"});
    const CommandResult result = RunRanks(2, arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("a launcher has started 2 processes, and `interp " +
                                      arguments[0] + "` is for one"));
    EXPECT_FALSE(std::filesystem::exists(folder / "out.rec"));
  }
}

}  // namespace
}  // namespace interp::testing
