// interp train --micro-batches and pipelines: what they give, tell and draw, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/io/file.h"
#include "core/io/npz.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing::train_pipeline_test {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr int kWidth = 48;

// A network of `layers` products with tanh behind each; `device(i)` is the op_device of layer i.
class Deep {
 public:
  explicit Deep(int layers, const std::vector<std::string>& devices = {}) {
    std::string main = "program version=0\nblock 0\n  var h0 float32[-1,48] check_feed\n";
    std::string startup = "program version=0\nblock 0\n";
    std::string ops;
    for (int i = 1; i <= layers; ++i) {
      const std::string device =
          devices.empty() ? "" : absl::StrCat(" {op_device=\"", devices[i - 1], "\"}");
      absl::StrAppend(&main, "  var w", i, " float32[48,48] param\n  var m", i,
                      " float32[-1,48]\n  var h", i, " float32[-1,48]\n");
      absl::StrAppend(&startup, "  var w", i, " float32[48,48] param\n");
      absl::StrAppend(&ops, "  mul(X=h", i - 1, ", Y=w", i, ") -> (Out=m", i, ")", device,
                      "\n  tanh(X=m", i, ") -> (Out=h", i, ")", device, "\n");
    }
    absl::StrAppend(&main, "  var square float32[-1,48]\n  var loss float32[1]\n", ops,
                    "  square(X=h", layers, ") -> (Out=square)\n  mean(X=square) -> (Out=loss)\n");
    for (int i = 1; i <= layers; ++i) {
      absl::StrAppend(&startup, "  gaussian_random() -> (Out=w", i,
                      ") {dtype=5, shape=longs:[48,48], std=0.2, seed=", i, "}\n");
    }
    std::ofstream(folder_ / "forward.txt") << main;
    std::ofstream(folder_ / "startup.txt") << startup;
    const CommandResult made =
        RunInterp({"backward", folder_ / "forward.txt", "--loss", "loss", "--optimizer",
                   "sgd:learning_rate=0.5", "--startup-from", folder_ / "startup.txt", "--startup",
                   folder_ / "first.pdmodel", "-o", folder_ / "train.pdmodel"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    std::vector<float> x(static_cast<size_t>(64 * kWidth));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37F * static_cast<float>(i));
    EXPECT_TRUE(
        WriteNpz(folder_ / "data.npz", {{"h0", Tensor::Of<float>(Shape{64, kWidth}, x)}}).ok());
  }

  std::string operator/(const std::string& name) const { return folder_ / name; }

  CommandResult Train(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {
        "train",  folder_ / "train.pdmodel", "--startup",    folder_ / "first.pdmodel",
        "--data", folder_ / "data.npz",      "--batch-size", "16"};
    all.insert(all.end(), more.begin(), more.end());
    return RunInterp(all);
  }

  nlohmann::json Report(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const CommandResult result = Train(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
  }

 private:
  TemporaryFolder folder_;
};

double LossOf(const nlohmann::json& report) { return report["fetches"][0]["mean"].get<double>(); }

std::string Read(const std::string& path) { return ReadFile(path).value_or("no file"); }

// Jobs that take the same time, and messages that take none.
const std::vector<std::string> kIdeal = {"--place",         "sim", "--sim-gflops",      "1",
                                         "--sim-copy-gbps", "1e6", "--sim-memory-gbps", "1e6",
                                         "--sim-latency",   "1ns"};

std::vector<std::string> With(std::vector<std::string> flags,
                              const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(TrainPipeline, MicroBatchesGiveTheLossOfTheWholeBatch) {
  const Deep deep(3);
  const double whole = LossOf(deep.Report({}));
  for (const char* count : {"1", "3", "4", "16"}) {
    const nlohmann::json report = deep.Report({"--micro-batches", count});
    EXPECT_NEAR(LossOf(report), whole, 1e-5) << count;
    EXPECT_EQ(report["pipeline"]["stages"].size(), 1U);
    EXPECT_TRUE(report["pipeline"]["bubble"].is_null());
  }
}

TEST(TrainPipeline, ReplicasHaveMicroBatchesOfTheirOwn) {
  const Deep deep(3);
  const double whole = LossOf(deep.Report({}));
  const nlohmann::json one = deep.Report({"--micro-batches", "1", "--replicas", "2"});
  EXPECT_NEAR(LossOf(one), whole, 1e-5);
  EXPECT_EQ(one["pipeline"]["stages"][0]["jobs"], "F0 B0");
  const nlohmann::json three = deep.Report({"--micro-batches", "3", "--replicas", "2"});
  EXPECT_NEAR(LossOf(three), whole, 1e-5);
  EXPECT_EQ(three["pipeline"]["stages"][0]["jobs"], "F0 B0 F1 B1 F2 B2");
}

TEST(TrainPipeline, TheBubbleIsMeasuredAndDrawn) {
  const Deep deep(8);
  for (const char* schedule : {"fthenb", "1f1b", "interleaved"}) {
    const nlohmann::json report = deep.Report(With(
        kIdeal, {"--micro-batches", "8", "--pipeline-stages", "4", "--pipeline-schedule", schedule,
                 "--pipeline-page", deep / "page.html", "--trace", deep / "t.json"}));
    const nlohmann::json& pipeline = report["pipeline"];
    const double formula = std::string(schedule) == "interleaved" ? 3.0 / 19 : 3.0 / 11;
    EXPECT_THAT(pipeline["bubble_by_formula"].get<double>(), DoubleNear(formula, 1e-9));
    EXPECT_THAT(pipeline["bubble"].get<double>(), DoubleNear(formula, 0.04)) << schedule;
    ASSERT_EQ(pipeline["stages"].size(), 4U);
    EXPECT_EQ(pipeline["stages"][3]["place"], "sim:3");
    const std::string page = Read(deep / "page.html");
    EXPECT_THAT(page, HasSubstr("stage 3, sim:3"));
    EXPECT_THAT(page, HasSubstr("<svg"));
    EXPECT_THAT(page, HasSubstr("by the formula"));
    const std::string trace = Read(deep / "t.json");
    EXPECT_THAT(trace, HasSubstr("\"stage 3 sim:3\""));
    EXPECT_TRUE(nlohmann::json::accept(trace));
  }
}

TEST(TrainPipeline, TheReportHasTheJobsOfEachStage) {
  const Deep deep(4);
  const nlohmann::json report =
      deep.Report({"--micro-batches", "3", "--pipeline-stages", "2", "--place", "sim"});
  const nlohmann::json& stages = report["pipeline"]["stages"];
  EXPECT_EQ(stages[0]["jobs"], "F0 F1 B0 F2 B1 B2");
  EXPECT_EQ(stages[0]["most_in_flight"], 2);
  EXPECT_EQ(stages[1]["jobs"], "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(stages[1]["most_in_flight"], 1);
}

TEST(TrainPipeline, DevicesOfTheProgramAreItsStages) {
  const Deep deep(4, {"gpu:0", "gpu:0", "gpu:1", "gpu:2"});
  const CommandResult result = deep.Train({"--micro-batches", "4", "--pipeline-schedule", "1f1b"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("pipeline  1f1b, 4 micro-batches through 3 stages; bubble by "
                                    "formula 33.3 %\n"));
}

TEST(TrainPipeline, SchedulesPlacesAndResumedRunsGiveTheSameBits) {
  const Deep deep(4);
  const auto train = [&](const std::string& name, const std::vector<std::string>& flags) {
    const std::string file = deep / (name + ".npz");
    const CommandResult result = deep.Train(With(flags, {"--micro-batches", "4", "--save", file}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Read(file);
  };
  const std::string expected = train("one", {});
  EXPECT_EQ(train("again", {}), expected);
  EXPECT_EQ(train("host", {"--pipeline-stages", "4", "--pipeline-schedule", "fthenb"}), expected);
  EXPECT_EQ(train("sim", {"--pipeline-stages", "4", "--place", "sim"}), expected);
  EXPECT_EQ(train("inter", {"--pipeline-stages", "2", "--pipeline-schedule", "interleaved",
                            "--place", "sim"}),
            expected);
  EXPECT_EQ(train("half", {"--steps", "2", "--pipeline-stages", "2", "--place", "sim",
                           "--checkpoint", deep / "c"}),
            train("two", {"--steps", "2"}));
  EXPECT_EQ(train("whole", {"--steps", "4", "--pipeline-stages", "2", "--place", "sim",
                            "--checkpoint", deep / "c", "--resume"}),
            expected);
}

TEST(TrainPipeline, EvaluatesWhatIsOnTheDevices) {
  const Deep deep(4);
  const std::vector<std::string> evaluate = {
      "--fetch",         "loss",         "--eval", deep / "forward.txt", "--eval-data",
      deep / "data.npz", "--eval-every", "2"};
  const auto mean = [&](const std::vector<std::string>& flags) {
    return deep.Report(With(evaluate, flags))["evaluation"][0]["mean"].get<double>();
  };
  EXPECT_NEAR(mean({"--micro-batches", "4", "--pipeline-stages", "2", "--place", "sim"}), mean({}),
              1e-5);
}

TEST(TrainPipeline, FlagsThatDoNotFitAreRefused) {
  const Deep deep(2);
  const auto fails = [&](const std::vector<std::string>& flags, const std::string& part) {
    const CommandResult result = deep.Train(flags);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(part));
  };
  fails({"--pipeline-stages", "2"},
        "without --micro-batches there is no effect of --pipeline-stages");
  fails({"--micro-batches", "17"}, "--micro-batches 17: a batch has 16 samples (--batch-size)");
  fails({"--micro-batches", "0"}, "--micro-batches");
  fails({"--micro-batches", "4", "--pipeline-schedule", "2f"}, "expected fthenb, 1f1b or");
  fails({"--micro-batches", "4", "--pipeline-schedule", "1f1b"},
        "no op has an attribute op_device with a number");
  fails({"--micro-batches", "4", "--pipeline-stages", "2", "--pipeline-chunks", "2"},
        "schedule 1f1b: a stage has 2 chunks, expected 1");
  fails({"--micro-batches", "5", "--pipeline-stages", "2", "--pipeline-schedule", "interleaved"},
        "5 micro-batches are no multiple of 2 stages");
  fails({"--micro-batches", "4", "--pipeline-stages", "7"}, "the forward part has 6 ops");
  fails({"--micro-batches", "4", "--pipeline-stages", "2", "--place", "sim:15"},
        "2 stages from sim:15 on need a device number 16");
  fails({"--micro-batches", "4", "--pipeline-stages", "2", "--replicas", "2"},
        "--replicas and a pipeline: expected one of the two");
  fails({"--micro-batches", "4", "--pipeline-page", deep / "p.html"},
        "--pipeline-page has no effect without a device");
}

TEST(TrainPipeline, DumpShowsTheJobsWithoutTraining) {
  const Deep deep(4);
  const auto dump = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"dump", deep / "train.pdmodel", "--micro-batches",
                                    "3",    "--pipeline-stages",    "2"};
    all.insert(all.end(), more.begin(), more.end());
    const CommandResult result = RunInterp(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(dump({"--stage", "jobs"}),
            "pipeline  1f1b, 3 micro-batches through 2 stages; bubble by formula 25.0 %\n"
            "stage 0  keeps 2 at most: F0 F1 B0 F2 B1 B2\n"
            "stage 1  keeps 1 at most: F0 B0 F1 B1 F2 B2\n");
  const nlohmann::json jobs = nlohmann::json::parse(
      dump({"--stage", "jobs", "--format", "json", "--pipeline-schedule", "fthenb"}));
  EXPECT_EQ(jobs["stages"][1]["jobs"], "F0 F1 F2 B0 B1 B2");
  EXPECT_THAT(dump({"--stage", "passes"}), HasSubstr("interp_job=\"B2\", interp_stage=1"));
  EXPECT_THAT(dump({"--place", "sim:0"}), HasSubstr("place=sim:1"));
  // What `interp train` shows unasked.
  EXPECT_THAT(dump({"--stage", "passes"}), HasSubstr("fetch(X=loss@MICRO_2)"));
}

}  // namespace
}  // namespace interp::testing::train_pipeline_test
