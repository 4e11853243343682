// interp train: data, logs, evaluation, replicas, checkpoints and going on from them.
// Long because all of it trains the same regression.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "core/io/file.h"
#include "core/io/file_lock.h"
#include "core/io/npy.h"
#include "core/io/npz.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing::train_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Linear regression y = 2 x0 - x1 by hand: gradient and update are ordinary ops. Dropout makes
// steps depend on random numbers.
class Regression {
 public:
  Regression() {
    std::ofstream(startup()) << "program version=0\n"
                                "block 0\n"
                                "  var w float32[2,1] persistable\n"
                                "  var lr float32[1] persistable\n"
                                "  fill_constant() -> (Out=w) {dtype=5, shape=longs:[2,1]}\n"
                                "  fill_constant() -> (Out=lr) {dtype=5, shape=longs:[1], "
                                "value=0.02}\n";
    std::ofstream(main()) << Forward(
                                 "dropout(X=x) -> (Out=dropped, Mask=mask) "
                                 "{dropout_prob=0.1, dropout_implementation="
                                 "\"upscale_in_train\"}")
                          << "  matmul_v2(X=dropped, Y=d) -> (Out=g) {trans_x=true}\n"
                             "  sgd(Param=w, Grad=g, LearningRate=lr) -> (ParamOut=w)\n";
    std::ofstream(eval()) << Forward("assign(X=x) -> (Out=dropped)");
    WriteData(100);
  }
  std::string startup() const { return folder_ / "startup.txt"; }
  std::string main() const { return folder_ / "main.txt"; }
  std::string eval() const { return folder_ / "eval.txt"; }
  std::string data() const { return folder_ / "data.npz"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> Arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"train", main(),    "--startup", startup(),      "--data",
                                    data(),  "--fetch", "loss",      "--batch-size", "8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  CommandResult Train(const std::vector<std::string>& more) const {
    return RunInterp(Arguments(more));
  }

 private:
  static std::string Forward(const std::string& drop) {
    return "program version=0\n"
           "block 0\n"
           "  var w float32[2,1] persistable\n"
           "  var lr float32[1] persistable\n"
           "  var x float32[-1,2] check_feed\n"
           "  var y float32[-1,1] check_feed\n"
           "  " +
           drop +
           "\n"
           "  mul(X=dropped, Y=w) -> (Out=p)\n"
           "  elementwise_sub(X=p, Y=y) -> (Out=d)\n"
           "  square(X=d) -> (Out=s)\n"
           "  reduce_mean(X=s) -> (Out=loss) {reduce_all=true}\n";
  }
  void WriteData(int64_t count) {
    std::vector<float> x;
    std::vector<float> y;
    for (int64_t i = 0; i < count; ++i) {
      const float a = static_cast<float>(i % 10) / 10;
      const float b = static_cast<float>(i % 7) / 7;
      x.insert(x.end(), {a, b});
      y.push_back(2 * a - b);
    }
    EXPECT_TRUE(WriteNpz(data(), {{"x", Tensor::Of<float>(Shape{count, 2}, x)},
                                  {"y", Tensor::Of<float>(Shape{count, 1}, y)}})
                    .ok());
  }

  TemporaryFolder folder_;
};

std::string Read(const std::string& path) { return ReadFile(path).value_or("no file"); }

int64_t CountLines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Train, TheLossFallsAndIsReported) {
  const Regression regression;
  const CommandResult result = regression.Train(
      {"--epochs", "20", "--json", "--eval", regression.eval(), "--eval-data", regression.data()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["steps"], 260);
  EXPECT_EQ(report["epochs"], 20);
  for (const char* key : {"step_median_ms", "first_ms", "samples_per_s", "peak_bytes"}) {
    EXPECT_GT(report[key].get<double>(), 0) << key;
  }
  EXPECT_GE(report["data_wait_ms"].get<double>(), 0);
  EXPECT_EQ(report["fetches"][0]["name"], "loss");
  EXPECT_LT(report["evaluation"][0]["mean"].get<double>(), 0.05);
  EXPECT_EQ(result.err, "");
}

TEST(Train, LogsALineAStepAndDraws) {
  const Regression regression;
  const CommandResult result = regression.Train(
      {"--steps", "7", "--log", regression / "log.csv", "--plot", regression / "loss.svg"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string log = Read(regression / "log.csv");
  EXPECT_THAT(log, ::testing::StartsWith("step,loss\n1,"));
  EXPECT_EQ(CountLines(log), 8);
  const std::string svg = Read(regression / "loss.svg");
  EXPECT_THAT(svg, ::testing::StartsWith("<svg"));
  EXPECT_THAT(svg, HasSubstr(">loss</text>"));
}

TEST(Train, TheSameSeedGivesTheSameBits) {
  const Regression regression;
  std::vector<std::string> saved;
  for (const char* seed : {"1", "1", "2"}) {
    const std::string path =
        regression / (std::string("w") + std::to_string(saved.size()) + ".npz");
    ASSERT_EQ(regression.Train({"--seed", seed, "--save", path}).exit_code, 0);
    saved.push_back(Read(path));
  }
  EXPECT_EQ(saved[0], saved[1]);
  EXPECT_NE(saved[0], saved[2]);
}

TEST(Train, KeepsTheLastCheckpoints) {
  const Regression regression;
  const std::string checkpoints = regression / "checkpoints";
  const CommandResult result = regression.Train(
      {"--steps", "20", "--checkpoint", checkpoints, "--checkpoint-every", "3", "--keep", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints)) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, ::testing::UnorderedElementsAre(".lock", "step-18", "step-20"));
}

TEST(Train, DamagedCheckpointsAreErrors) {
  const Regression regression;
  const std::string checkpoints = regression / "checkpoints";
  ASSERT_EQ(regression.Train({"--steps", "5", "--checkpoint", checkpoints}).exit_code, 0);
  const std::string state = checkpoints + "/step-5/state.txt";
  const std::string text = Read(state);
  const auto resume = [&](const std::string& damaged) {
    std::ofstream(state) << damaged;
    return regression.Train({"--steps", "9", "--checkpoint", checkpoints, "--resume"});
  };
  EXPECT_THAT(resume(text.substr(0, text.size() / 2)).err, HasSubstr("damaged"));
  const size_t checksum = text.find("checksum");
  ASSERT_NE(checksum, std::string::npos);
  EXPECT_THAT(resume(text.substr(0, checksum) + "variable other\n" + text.substr(checksum)).err,
              HasSubstr("ends before parameter 'other'"));
  const size_t batch = text.find("batch 5");
  ASSERT_NE(batch, std::string::npos);
  EXPECT_THAT(
      resume(text.substr(0, batch) + "batch 9223372036854775807" + text.substr(batch + 7)).err,
      HasSubstr("damaged"));
  EXPECT_EQ(resume("").exit_code, 4);
  EXPECT_EQ(resume(text).exit_code, 0);
}

TEST(Train, GoesOnWithTheBatchesItBeganWith) {
  const Regression regression;
  const std::string checkpoints = regression / "checkpoints";
  ASSERT_EQ(regression.Train({"--steps", "7", "--checkpoint", checkpoints}).exit_code, 0);
  const CommandResult result =
      RunInterp({"train", regression.main(), "--data", regression.data(), "--fetch", "loss",
                 "--batch-size", "50", "--steps", "9", "--checkpoint", checkpoints, "--resume"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("was written with batch size 8, and now batch size is 50"));
}

TEST(Train, GoesOnBeforeAnIncompleteCheckpointAndSaysSo) {
  const Regression regression;
  const std::string checkpoints = regression / "checkpoints";
  ASSERT_EQ(regression.Train({"--steps", "7", "--checkpoint", checkpoints}).exit_code, 0);
  std::filesystem::create_directory(checkpoints + "/step-9");
  const CommandResult result =
      regression.Train({"--steps", "8", "--checkpoint", checkpoints, "--resume"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("step-9/state.txt"));
  EXPECT_THAT(result.err, HasSubstr("going on from '" + checkpoints + "/step-7'"));
}

// Its checkpoints would be the oldest by their steps, and be removed as such.
TEST(Train, ACheckpointGivesParameters) {
  const Regression regression;
  const std::string checkpoints = regression / "checkpoints";
  ASSERT_EQ(
      regression
          .Train({"--steps", "7", "--checkpoint", checkpoints, "--save", regression / "w.npz"})
          .exit_code,
      0);
  const auto loss = [&](const std::string& params) {
    const CommandResult result = RunInterp({"run", regression.eval(), "--params", params, "--feed",
                                            regression.data(), "--fetch", "loss", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out)["fetches"];
  };
  EXPECT_EQ(loss(checkpoints + "/step-7"), loss(regression / "w.npz"));
  // To train anew from its values, too.
  EXPECT_EQ(RunInterp({"train", regression.main(), "--params", checkpoints + "/step-7", "--data",
                       regression.data(), "--batch-size", "50", "--fetch", "loss"})
                .exit_code,
            0);
  std::filesystem::remove(checkpoints + "/step-7/persistables.pdiparams");
  const CommandResult damaged = RunInterp(
      {"run", regression.eval(), "--params", checkpoints + "/step-7", "--feed", regression.data()});
  EXPECT_EQ(damaged.exit_code, 4);
  EXPECT_THAT(damaged.err, HasSubstr("step-7/persistables.pdiparams"));
}

TEST(Train, FlagsThatRepeatTakeOneValueEach) {
  const Regression regression;
  const CommandResult result =
      RunInterp({"train", "--startup", regression.startup(), "--fetch", "loss", "--batch-size", "8",
                 "--steps", "2", "--data", regression.data(), regression.main()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Train, HasNoFlagToPruneNothing) {
  const Regression regression;
  const CommandResult result = regression.Train({"--no-prune"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--no-prune"));
}

TEST(Train, NoDataTakesMoreMemoryThanAllowed) {
  const Regression regression;
  std::filesystem::create_directory(regression / "folder");
  const Tensor x = Tensor::Of<float>(Shape{10, 2}, std::vector<float>(20));
  const Tensor y = Tensor::Of<float>(Shape{10, 1}, std::vector<float>(10));
  ASSERT_TRUE(WriteNpy(regression / "folder/x.npy", x).ok());
  ASSERT_TRUE(WriteNpy(regression / "folder/y.npy", y).ok());
  ASSERT_TRUE(WriteNpz(regression / "data10.npz", {{"x", x}, {"y", y}}).ok());
  std::string csv = "x[0],x[1],y\n";
  for (int i = 0; i < 10; ++i) csv += "1,2,3\n";
  std::ofstream(regression / "data.csv") << csv;
  for (const char* name : {"folder", "data10.npz", "data.csv"}) {
    const auto train = [&](const std::string& limit) {
      return RunInterp({"train", regression.main(), "--startup", regression.startup(), "--data",
                        regression / name, "--batch-size", "5", "--fetch", "loss",
                        "--max-file-memory", limit});
    };
    const CommandResult result = train("230");
    EXPECT_EQ(result.exit_code, 2) << name;
    EXPECT_THAT(result.err, HasSubstr("bytes")) << name;
    EXPECT_EQ(train("1000").exit_code, 0) << name;
  }
}

TEST(Train, ANewTrainingTakesNoFolderOfAnother) {
  const Regression regression;
  const std::string checkpoints = regression / "checkpoints";
  ASSERT_EQ(regression.Train({"--steps", "5", "--checkpoint", checkpoints}).exit_code, 0);
  const CommandResult again = regression.Train({"--steps", "3", "--checkpoint", checkpoints});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("without --resume: "), HasSubstr("step-5' is of another training")));
}

TEST(Train, AFolderThatSomebodyTrainsInIsRefusedAtOnce) {
  const Regression regression;
  const std::string checkpoints = regression / "checkpoints";
  ASSERT_EQ(regression.Train({"--steps", "5", "--checkpoint", checkpoints}).exit_code, 0);
  const auto lock = FileLock::Take(checkpoints + "/.lock");
  ASSERT_TRUE(lock.ok());
  const CommandResult result = regression.Train(
      {"--steps", "9", "--checkpoint", checkpoints, "--resume", "--log", regression / "log.csv"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("checkpoints' is used by another training"));
  EXPECT_EQ(Read(regression / "log.csv"), "no file");
}

TEST(Train, ResultsThatCannotBeWrittenAreToldBeforeTheFirstStep) {
  const Regression regression;
  std::ofstream(regression / "file").close();
  for (const std::string flag : {"--save", "--plot", "--checkpoint"}) {
    const CommandResult result =
        regression.Train({"--steps", "3", "--log", regression / (flag + ".csv"), flag,
                          regression / "file/below.npz"});
    EXPECT_EQ(result.exit_code, 1) << flag;
    EXPECT_THAT(result.err, HasSubstr("below.npz")) << flag;
    EXPECT_EQ(Read(regression / (flag + ".csv")), "no file") << flag;
  }
}

// A training process that is killed after a while, if it has not ended before: its exit code, -1
// where it was killed.
int TrainAndKill(const std::vector<std::string>& arguments, std::chrono::milliseconds after) {
  const std::string program = INTERP_BINARY_DIR "/interp";
  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    (void)!freopen("/dev/null", "w", stdout);
    (void)!freopen("/dev/null", "w", stderr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  std::this_thread::sleep_for(after);
  kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Train, GoesOnToTheSameBitsAfterKills) {
  const Regression regression;
  const std::vector<std::string> common = {"--steps", "1500",   "--checkpoint-every",
                                           "7",       "--seed", "3"};
  const auto with = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    for (const std::string flag : {"--checkpoint", "--save", "--log"}) {
      more.push_back(flag);
      more.push_back(regression / (name + flag + (flag == "--save" ? ".npz" : "")));
    }
    return regression.Arguments(more);
  };
  ASSERT_EQ(RunInterp(with("whole", {})).exit_code, 0);
  int kills = 0;
  for (int after_ms = 40;
       TrainAndKill(with("killed", {"--resume"}), std::chrono::milliseconds(after_ms)) != 0;
       after_ms += 37) {
    ASSERT_LT(++kills, 300);
  }
  EXPECT_GT(kills, 0);
  EXPECT_EQ(Read(regression / "whole--save.npz"), Read(regression / "killed--save.npz"));
  EXPECT_EQ(Read(regression / "whole--log"), Read(regression / "killed--log"));
}

// No checkpoint is due before the end, but one is written where the process is asked to end.
TEST(Train, EndsAfterAStepWhenInterruptedAndGoesOn) {
  const Regression regression;
  std::string text = Read(regression.main());
  text.insert(text.find("  var lr "), "  var shown float32[1]\n");
  text.insert(text.find("  sgd("), "  print(In=lr) -> (Out=shown) {first_n=1}\n");
  std::ofstream(regression.main()) << text;
  const auto with = [&](const std::string& name) {
    return regression.Arguments({"--steps", "100000", "--checkpoint-every", "1000000", "--seed",
                                 "3", "--checkpoint", regression / name, "--resume", "--save",
                                 regression / (name + ".npz")});
  };
  ASSERT_EQ(RunInterp(with("whole")).exit_code, 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    // In the first step that it takes.
    const CommandResult result = RunInterpAndSignal(with("interrupted"), "data: [", signal);
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_EQ(Read(regression / "interrupted.npz"), "no file");
  }
  ASSERT_EQ(RunInterp(with("interrupted")).exit_code, 0);
  EXPECT_EQ(Read(regression / "whole.npz"), Read(regression / "interrupted.npz"));
}

// Whether the process waits for something, or has ended.
bool Waits(pid_t pid) {
  const std::string stat = Read("/proc/" + std::to_string(pid) + "/stat");
  const char state = stat[stat.rfind(") ") + 2];
  return state == 'S' || state == 'Z';
}

// A log to a pipe that nobody reads: there is nothing to lose yet.
TEST(Train, EndsAtOnceWhenItWaitsForAReader) {
  const Regression regression;
  ASSERT_EQ(mkfifo((regression / "pipe").c_str(), 0600), 0);
  std::ofstream(regression.startup(), std::ios::app)
      << "  var shown float32[1]\n  print(In=lr) -> (Out=shown) {first_n=1}\n";
  const CommandResult result =
      RunProgramAnd("interp", regression.Arguments({"--steps", "3", "--log", regression / "pipe"}),
                    [](pid_t child, const std::string& err) {
                      const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
                      while ((Read(err).find("data: [") == std::string::npos || !Waits(child)) &&
                             std::chrono::steady_clock::now() < until) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(20));
                      }
                      kill(child, SIGTERM);
                    });
  EXPECT_EQ(result.exit_code, -1) << result.err;
}

TEST(Train, ALogThatNobodyReadsAnyMoreCostsNoStep) {
  const Regression regression;
  const std::string pipe = regression / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const CommandResult result = RunProgramAnd(
      "interp",
      regression.Arguments({"--steps", "100000000", "--log", pipe, "--checkpoint-every",
                            "100000000", "--checkpoint", regression / "checkpoints"}),
      [&](pid_t, const std::string&) {
        std::ifstream reader(pipe);
        std::string line;
        std::getline(reader, line);
      });
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("Broken pipe"), HasSubstr("; --resume goes on after")));
  EXPECT_FALSE(std::filesystem::is_empty(regression / "checkpoints"));
}

// The last of 13 batches has 4 samples of 8: what has a value per sample is the mean of them all.
TEST(Train, EvaluatesValuesOfSamplesWhenTheLastBatchIsNotFull) {
  const Regression regression;
  for (const std::string& program : {regression.main(), regression.eval()}) {
    std::ofstream(program, std::ios::app)
        << "  greater_than(X=p, Y=y) -> (Out=above)\n"
           "  cast(X=above) -> (Out=count) {in_dtype=0, out_dtype=3}\n"
           "  cast(X=above) -> (Out=share) {in_dtype=0, out_dtype=5}\n";
  }
  const CommandResult result =
      regression.Train({"--steps", "3", "--json", "--eval", regression.eval(), "--eval-data",
                        regression.data(), "--fetch", "s,above,count,share"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto evaluation = nlohmann::json::parse(result.out)["evaluation"];
  std::map<std::string, double> means;
  for (const auto& mean : evaluation) {
    EXPECT_EQ(mean["shape"], nlohmann::json::array()) << mean["name"];
    means[mean["name"]] = mean["mean"];
  }
  EXPECT_NEAR(means.at("s"), means.at("loss"), 1e-6);
  EXPECT_GT(means.at("share"), 0);
  EXPECT_EQ(means.at("above"), means.at("share"));
  EXPECT_EQ(means.at("count"), means.at("share"));
}

// The evaluation comes at step 5, where no checkpoint is due.
TEST(Train, AnEvaluationThatFailsLosesNoSteps) {
  const Regression regression;
  std::ofstream(regression.eval(), std::ios::app)
      << "  fill_constant() -> (Out=no) {dtype=0, shape=longs:[1], value=0.0}\n"
         "  assert(Cond=no) -> ()\n";
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    const std::vector<std::string> all = {"train",
                                          regression.main(),
                                          "--startup",
                                          regression.startup(),
                                          "--data",
                                          regression.data(),
                                          "--fetch",
                                          "loss",
                                          "--batch-size",
                                          "8",
                                          "--steps",
                                          "20",
                                          "--checkpoint",
                                          regression / name,
                                          "--checkpoint-every",
                                          "3",
                                          "--resume",
                                          "--save",
                                          regression / (name + ".npz")};
    more.insert(more.begin(), all.begin(), all.end());
    return RunInterp(more);
  };
  const CommandResult failed = train("parts", {"--eval", regression.eval(), "--eval-data",
                                               regression.data(), "--eval-every", "5"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err,
              AllOf(HasSubstr("--eval "), HasSubstr("; --resume goes on after step 5")));
  EXPECT_TRUE(std::filesystem::exists(regression / "parts/step-5/state.txt"));
  EXPECT_EQ(Read(regression / "parts.npz"), "no file");
  ASSERT_EQ(train("parts", {}).exit_code, 0);
  ASSERT_EQ(train("whole", {}).exit_code, 0);
  EXPECT_EQ(Read(regression / "parts.npz"), Read(regression / "whole.npz"));
}

// Evaluates in a loop without end, once it has shown its data.
void NeverEndEvaluations(const Regression& regression) {
  std::string text = Read(regression.eval());
  text.insert(text.find("  var x "), "  var go bool[1]\n  var shown float32[-1,2]\n");
  const std::string assign = "  assign(X=x) -> (Out=dropped)\n";
  text.replace(text.find(assign), assign.size(),
               "  print(In=x) -> (Out=shown) {first_n=1}\n"
               "  assign(X=shown) -> (Out=dropped)\n"
               "  fill_constant() -> (Out=go) {dtype=0, shape=longs:[1], value=1.0}\n"
               "  while(X=[go, dropped], Condition=go) -> (Out=[go, dropped]) "
               "{sub_block=block:1}\n");
  text += "block 1 parent=0\n  scale(X=dropped) -> (Out=dropped) {scale=0.5}\n";
  std::ofstream(regression.eval()) << text;
}

TEST(Train, EndsWithinAnEvaluationWhenInterrupted) {
  const Regression regression;
  NeverEndEvaluations(regression);
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string name = signal == SIGINT ? "int" : "term";
    const CommandResult result = RunInterpAndSignal(
        regression.Arguments({"--steps", "3", "--eval", regression.eval(), "--eval-data",
                              regression.data(), "--checkpoint", regression / name, "--save",
                              regression / (name + ".npz")}),
        "data: [", signal);
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.err, HasSubstr("interrupted after step 3; --resume goes on from there"));
    EXPECT_TRUE(std::filesystem::exists(regression / (name + "/step-3/state.txt")));
    EXPECT_EQ(Read(regression / (name + ".npz")), "no file");
  }
}

TEST(Train, RunsOfAnEvaluationTakeNoLongerThanTheTimeOut) {
  const Regression regression;
  NeverEndEvaluations(regression);
  const CommandResult result =
      regression.Train({"--steps", "3", "--eval", regression.eval(), "--eval-data",
                        regression.data(), "--checkpoint", regression / "c", "--timeout", "1s"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("--eval "), HasSubstr("--resume goes on after step 3")));
}

TEST(Train, AStartupProgramTakesNoLongerThanTheTimeOut) {
  const Regression regression;
  std::ofstream(regression.startup(), std::ios::app)
      << "  fill_constant() -> (Out=go) {dtype=0, shape=longs:[1], value=1.0}\n"
         "  while(X=[go, w], Condition=go) -> (Out=[go, w]) {sub_block=block:1}\n"
         "block 1 parent=0\n"
         "  scale(X=w) -> (Out=w) {scale=0.5}\n";
  const CommandResult result = regression.Train({"--steps", "3", "--timeout", "100ms"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("startup.txt"), HasSubstr("time-out ended")));
}

TEST(Train, AStepThatFailsIsInNoCheckpoint) {
  const Regression regression;
  const CommandResult result =
      regression.Train({"--steps", "20", "--checkpoint", regression / "checkpoints",
                        "--checkpoint-every", "3", "--timeout", "1ns"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(regression / "checkpoints/step-0"));
  EXPECT_FALSE(std::filesystem::exists(regression / "checkpoints/step-1"));
}

// One that the user made, say.
TEST(Train, AnEmptyLogIsNoHindrance) {
  const Regression regression;
  const std::vector<std::string> arguments = {
      "--resume", "--checkpoint", regression / "checkpoints", "--log", regression / "log.csv"};
  const auto train = [&](const std::string& steps) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--steps", steps});
    return regression.Train(all);
  };
  ASSERT_EQ(train("3").exit_code, 0);
  std::ofstream(regression / "log.csv").close();
  const CommandResult result = train("5");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(Read(regression / "log.csv"), AllOf(HasSubstr("step,loss\n4,"), HasSubstr("\n5,")));
}

// The programs that `interp backward` makes of y = x w, with dropout of that probability.
struct Derived {
  Derived(const Regression& regression, const std::string& dropout)
      : main(regression / "train.pdmodel"), startup(regression / "first.pdmodel") {
    const std::string forward = regression / "forward.txt";
    std::string text = Read(regression.eval());
    const std::string assign = "assign(X=x) -> (Out=dropped)";
    text.replace(text.find(assign), assign.size(),
                 "dropout(X=x) -> (Out=dropped, Mask=mask) {dropout_prob=" + dropout +
                     ", dropout_implementation=\"upscale_in_train\"}");
    const std::string block = "block 0\n";
    text.insert(text.find(block) + block.size(),
                "  var dropped float32[-1,2]\n  var mask uint8[-1,2]\n  var p float32[-1,1]\n"
                "  var d float32[-1,1]\n  var s float32[-1,1]\n  var loss float32[]\n");
    std::ofstream(forward) << text;
    const CommandResult made =
        RunInterp({"backward", forward, "--loss", "loss", "--optimizer", "adam:learning_rate=0.02",
                   "--startup-from", regression.startup(), "--startup", startup, "-o", main});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }
  std::string main;
  std::string startup;
};

std::vector<double> Losses(const std::string& log) {
  std::istringstream lines(Read(log));
  std::vector<double> losses;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) losses.push_back(std::stod(line.substr(line.find(',') + 1)));
  return losses;
}

TEST(Train, ReplicasFollowTheRunOfOne) {
  const Regression regression;
  const Derived derived(regression, "0.0");
  const auto losses = [&](const std::string& replicas) {
    const std::string log = regression / ("log" + replicas);
    const CommandResult result =
        RunInterp({"train", derived.main, "--startup", derived.startup, "--data", regression.data(),
                   "--batch-size", "8", "--epochs", "3", "--log", log, "--replicas", replicas});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Losses(log);
  };
  const std::vector<double> one = losses("1");
  ASSERT_EQ(one.size(), 39u);
  for (const char* replicas : {"2", "3", "4"}) {
    EXPECT_THAT(losses(replicas), ::testing::Pointwise(::testing::DoubleNear(1e-5), one));
  }
}

TEST(Train, ReplicasGoOnToTheSameBits) {
  const Regression regression;
  const Derived derived(regression, "0.2");
  const auto train = [&](const std::string& name, const std::string& steps) {
    const CommandResult result =
        RunInterp({"train", derived.main, "--startup", derived.startup, "--data", regression.data(),
                   "--batch-size", "8", "--steps", steps, "--checkpoint", regression / name,
                   "--resume", "--save", regression / (name + ".npz"), "--replicas", "3"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Read(regression / (name + ".npz"));
  };
  train("parts", "6");
  train("parts", "17");
  EXPECT_EQ(train("parts", "30"), train("whole", "30"));
}

TEST(Train, ReplicasNeedAProgramWithRoles) {
  const Regression regression;
  const CommandResult result = regression.Train({"--replicas", "2"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("0 of the update by their attribute op_role"));
}

TEST(Train, SaysWhatIsWrong) {
  const Regression regression;
  const auto error = [&](const std::vector<std::string>& arguments, int code = 2) {
    const CommandResult result = RunInterp(arguments);
    EXPECT_EQ(result.exit_code, code) << result.err;
    return result.err;
  };
  EXPECT_THAT(error({"train", regression.main(), "--data", regression.data(), "--batch-size", "8"}),
              HasSubstr("expected --startup or --params"));
  std::ofstream(regression / "rate.txt")
      << "program version=0\nblock 0\n  var lr float32[1] persistable\n"
         "  fill_constant() -> (Out=lr) {dtype=5, shape=longs:[1], value=0.02}\n";
  EXPECT_THAT(error({"train", regression.main(), "--data", regression.data(), "--batch-size", "8",
                     "--startup", regression / "rate.txt"},
                    4),
              HasSubstr("parameter 'w' has no value: expected one from --startup or --params"));
  EXPECT_THAT(error(regression.Arguments({"--epochs", "1", "--steps", "2"})),
              HasSubstr("expected one of the two"));
  EXPECT_THAT(error(regression.Arguments({"--data-parallel", "--bucket-size", "4Q"})),
              HasSubstr("--bucket-size"));
  EXPECT_THAT(error(regression.Arguments({"--epochs", "9223372036854775807"})),
              HasSubstr("too many"));
  EXPECT_THAT(error({"train", regression.main(), "--data", regression.data(), "--batch-size", "8",
                     "--checkpoint", regression / "none", "--resume"},
                    4),
              HasSubstr("there is no checkpoint in"));
  EXPECT_THAT(error(regression.Arguments({"--resume"})), HasSubstr("expected --checkpoint DIR"));
  EXPECT_THAT(error(regression.Arguments({"--eval", regression.eval()})),
              HasSubstr("expected both or none"));
  EXPECT_THAT(
      error(regression.Arguments({"--eval", regression.main(), "--eval-data", regression.data()}),
            4),
      HasSubstr("op 'sgd' writes 'w', which is being trained"));
  EXPECT_THAT(error(regression.Arguments({"--data", regression / "none.npz"})),
              HasSubstr("none.npz"));
  EXPECT_THAT(error(regression.Arguments({"--save", regression / "w.txt"})),
              HasSubstr("ends in neither"));
  EXPECT_THAT(error(regression.Arguments({"--log", regression / "no/where.csv"}), 1),
              HasSubstr("cannot create"));
  EXPECT_THAT(error(regression.Arguments({"--fetch", "los"})), HasSubstr("nearest: 'loss'"));
  EXPECT_THAT(error(regression.Arguments(
                        {"--eval", regression / "none.pdmodel", "--eval-data", regression.data()}),
                    4),
              HasSubstr("none.pdmodel"));
}

}  // namespace
}  // namespace interp::testing::train_test
