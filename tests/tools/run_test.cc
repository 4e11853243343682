// `interp run` from outside: what it prints, writes and returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/io/file.h"
#include "core/io/npy.h"
#include "core/io/npz.h"
#include "nlohmann/json.hpp"
#include "tests/tools/cli_programs.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(RunCommandTest, ReadsTheDigitAsPaddleDoes) {
  const CommandResult result = RunDigits({"--expect", kDigits + "expected.npz"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr(kOutput + "  float32  [1,10]"));
  EXPECT_THAT(result.out, HasSubstr(kOutput + ": ok"));
  EXPECT_THAT(result.out, HasSubstr("peak memory"));
}

// Each thread takes its stack from the room for addresses, of which there is little.
TEST(RunCommandTest, ThreadsThatTheSystemRefusesAreAnError) {
  const auto run = [](const std::string& scheduler) {
    const std::string command = std::string("ulimit -v 900000; exec ") + INTERP_BINARY_DIR +
                                "/interp run " + kModel + " --feed " + kDigits +
                                "image.npy --threads 1 --workers 256 --scheduler " + scheduler;
    return RunProgram("/bin/sh", {"-c", command});
  };
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const CommandResult async = run("async");
  EXPECT_EQ(async.exit_code, 1) << async.err;
  EXPECT_THAT(async.err, HasSubstr("cannot start 255 threads of queue 'host'"));
  const CommandResult engine = run("engine");
  EXPECT_EQ(engine.exit_code, 1) << engine.err;
  EXPECT_THAT(engine.err, HasSubstr("the system gives no thread to queue"));
#else
  (void)run;  // sanitizers need more addresses than that
#endif
}

TEST(RunCommandTest, FindsTheParametersBesideTheModel) {
  const std::vector<std::string> rest = {"--feed", kDigits + "image.npy", "--expect",
                                         kDigits + "expected.npz"};
  for (const std::string& model : {kModel, kDigits, kDigits + "digits"}) {
    std::vector<std::string> arguments = {"run", model};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    const CommandResult result = RunInterp(arguments);
    EXPECT_EQ(result.exit_code, 0) << model << ": " << result.err;
    EXPECT_THAT(result.out, HasSubstr(kOutput + ": ok"));
  }
}

TEST(RunCommandTest, JsonHoldsTimesMemoryAndFetches) {
  const CommandResult result = RunDigits({"--json", "--repeat", "3", "--profile"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  for (const char* key :
       {"load_ms", "prepare_ms", "first_ms", "median_ms", "min_ms", "p99_ms", "peak_bytes"}) {
    EXPECT_TRUE(report.at(key).is_number()) << key;
    EXPECT_GT(report.at(key), 0) << key;
  }
  EXPECT_EQ(report.at("runs"), 3);
  EXPECT_EQ(report.at("fetches").at(0).at("name"), kOutput);
  EXPECT_EQ(report.at("fetches").at(0).at("shape"), nlohmann::json({1, 10}));
  EXPECT_EQ(report.at("profile").at("instructions").at(0).at("calls"), 3);
  for (const auto& row : report.at("profile").at("op_types")) {
    const bool computes = row.at("op") == "fused_conv2d" || row.at("op") == "fc";
    EXPECT_EQ(row.contains("gflop_per_s"), computes) << row;
    const bool moves = row.at("op") != "feed" && row.at("op") != "fetch";
    EXPECT_EQ(row.contains("gb_per_s"), moves) << row;
    EXPECT_EQ(row.contains("share_of_limit"), moves) << row;
  }
}

TEST(RunCommandTest, ProfileKnowsTheMachinesLimit) {
  const CommandResult result = RunDigits({"--json", "--threads", "1", "--profile"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto profile = nlohmann::json::parse(result.out).at("profile");
  const auto& limit = profile.at("limit");
  EXPECT_EQ(limit.at("threads"), 1);
  EXPECT_EQ(limit.at("products").at(0).at("dtype"), "float32");
  EXPECT_GT(limit.at("products").at(0).at("gflop_per_s"), 0);
  for (const auto& copies : limit.at("copies")) EXPECT_GT(copies.at("gb_per_s"), 0) << copies;
  int products = 0;
  for (const auto& row : profile.at("instructions")) {
    if (row.at("op") != "fc") continue;
    EXPECT_EQ(row.at("algorithm"), "kept panels");
    ++products;
  }
  EXPECT_EQ(products, 1);
}

TEST(RunCommandTest, PeakIsWhatIsAlive) {
  const CommandResult result = RunDigits({"--json", "--scheduler", "trace"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_GE(report.at("peak_ratio"), 1.0);
  EXPECT_LE(report.at("peak_ratio"), 1.05);
  EXPECT_EQ(report.at("peak_bytes"), report.at("liveness_bound_bytes"));
}

TEST(RunCommandTest, TraceIsWrittenForTheLastRun) {
  const TemporaryFolder folder;
  const CommandResult result =
      RunDigits({"--trace", folder / "t.json", "--repeat", "3", "--stall-report", "10s"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  const absl::StatusOr<std::string> text = ReadFile(folder / "t.json");
  ASSERT_TRUE(text.ok());
  int fetches = 0;
  const auto trace = nlohmann::json::parse(*text);
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("name") == "fetch") ++fetches;
  }
  EXPECT_EQ(fetches, 1);
  EXPECT_EQ(RunDigits({"--trace", folder / "none/t.json"}).exit_code, 1);
  EXPECT_EQ(RunDigits({"--stall-report", "soon"}).exit_code, 2);
}

TEST(RunCommandTest, AllSchedulersGiveTheSameBits) {
  const TemporaryFolder folder;
  ASSERT_EQ(RunDigits({"--out", folder / "trace.npz", "--scheduler", "trace"}).exit_code, 0);
  for (const char* scheduler : {"engine", "async", "auto"}) {
    const CommandResult result = RunDigits({"--scheduler", scheduler, "--workers", "2", "--expect",
                                            folder / "trace.npz", "--rtol", "0", "--atol", "0"});
    EXPECT_EQ(result.exit_code, 0) << scheduler << "\n" << result.out << result.err;
  }
}

TEST(RunCommandTest, AnyVariableCanBeFetchedAndWritten) {
  const TemporaryFolder folder;
  const CommandResult result = RunDigits(
      {"--fetch", "conv2d_0.tmp_0,softmax_0.tmp_0", "--fetch", kOutput, "--out", folder / "out"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("conv2d_0.tmp_0"));
  EXPECT_TRUE(ReadNpy(folder / "out/save_infer_model_scale_0.tmp_0.npy").ok());
  const absl::StatusOr<Tensor> conv = ReadNpy(folder / "out/conv2d_0.tmp_0.npy");
  ASSERT_TRUE(conv.ok()) << conv.status().message();
  EXPECT_EQ(DescribeType(*conv), "float32[1,8,28,28]");
}

TEST(RunCommandTest, ResultsThatDifferHaveTheirOwnExitCode) {
  const TemporaryFolder folder;
  absl::StatusOr<std::vector<NamedTensor>> expected = ReadNpz(kDigits + "expected.npz");
  ASSERT_TRUE(expected.ok());
  absl::StatusOr<Tensor> changed = (*expected)[0].second.Clone(SystemAllocator());
  changed->mutable_data<float>()[4] += 0.5f;
  ASSERT_TRUE(WriteNpz(folder / "wrong.npz", {{kOutput, *changed}}).ok());
  const CommandResult result = RunDigits({"--expect", folder / "wrong.npz"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out, HasSubstr(kOutput + ": differs, 1 of 10 elements"));
  EXPECT_THAT(result.out, HasSubstr("at [0,4]"));
}

TEST(RunCommandTest, UsageErrorsNameWhatIsWrong) {
  const CommandResult no_feed = RunInterp({"run", kModel});
  EXPECT_EQ(no_feed.exit_code, 2);
  EXPECT_THAT(no_feed.err, StartsWith("nothing is fed to 'image' float32[-1,1,28,28]"));
  const CommandResult fetch = RunDigits({"--fetch", "softmax_0.tmp"});
  EXPECT_EQ(fetch.exit_code, 2);
  EXPECT_THAT(fetch.err, HasSubstr("no variable 'softmax_0.tmp'; nearest: 'softmax_0.tmp_0'"));
  const CommandResult scheduler = RunDigits({"--scheduler", "fast"});
  EXPECT_EQ(scheduler.exit_code, 2);
  EXPECT_THAT(scheduler.err, HasSubstr("--scheduler"));
  EXPECT_EQ(RunDigits({"--disable-pass", "nonsense"}).exit_code, 2);
  EXPECT_EQ(RunDigits({"--max-memory", "much"}).exit_code, 2);
  EXPECT_EQ(RunDigits({"--repeat", "-1"}).exit_code, 2);
  const CommandResult feed = RunDigits({"--max-file-memory", "1K"});
  EXPECT_EQ(feed.exit_code, 2);
  EXPECT_THAT(feed.err, HasSubstr("the limit is 1024"));
  EXPECT_EQ(RunInterp({}).exit_code, 2);
  EXPECT_EQ(RunInterp({"--help"}).exit_code, 0);
}

TEST(RunCommandTest, UnusableModelsHaveTheirOwnExitCode) {
  const TemporaryFolder folder;
  const absl::StatusOr<std::string> bytes = ReadFile(kModel);
  ASSERT_TRUE(bytes.ok());
  std::ofstream(folder / "cut.pdmodel") << bytes->substr(0, bytes->size() / 2);
  const CommandResult cut = RunInterp({"run", folder / "cut.pdmodel"});
  EXPECT_EQ(cut.exit_code, 4);
  EXPECT_THAT(cut.err, StartsWith(folder / "cut.pdmodel"));
  EXPECT_EQ(RunInterp({"run", folder / "none.pdmodel"}).exit_code, 4);
  const CommandResult params =
      RunInterp({"run", kModel, "--params", kModel, "--feed", kDigits + "image.npy"});
  EXPECT_EQ(params.exit_code, 4);
  EXPECT_THAT(params.err, StartsWith(kModel));
}

TEST(RunCommandTest, FailedRunsHaveTheirOwnExitCode) {
  const TemporaryFolder folder;
  std::filesystem::copy(kModel, folder / "alone.pdmodel");
  const CommandResult no_params =
      RunInterp({"run", folder / "alone.pdmodel", "--feed", kDigits + "image.npy"});
  EXPECT_EQ(no_params.exit_code, 4);
  EXPECT_THAT(no_params.err, HasSubstr("has no value; load the parameters first (--params)"));
  const CommandResult memory = RunDigits({"--max-memory", "1K"});
  EXPECT_EQ(memory.exit_code, 1);
  EXPECT_EQ(RunDigits({"--repeat", "100000000", "--timeout", "1ns"}).exit_code, 1);
}

TEST(RunCommandTest, FeedsMustFit) {
  const ReluProgram relu;
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpy(folder / "x.npy", Tensor::Of<double>({1, 2}, {1, 2})).ok());
  const CommandResult dtype = relu.Run({"--feed", folder / "x.npy", "--fetch", "y"});
  EXPECT_EQ(dtype.exit_code, 2);
  EXPECT_THAT(dtype.err, HasSubstr("feed 'x' is float64[1,2], expected float32[-1,2]"));
  const CommandResult shape = relu.Run({"--feed", "x=random:1x3", "--fetch", "y"});
  EXPECT_EQ(shape.exit_code, 2);
  EXPECT_THAT(shape.err, HasSubstr("feed 'x' is float32[1,3], expected float32[-1,2]"));
}

TEST(RunCommandTest, NanCheckNamesOpAndVariable) {
  const ReluProgram relu;
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpy(folder / "x.npy", Tensor::Of<float>({1, 2}, {-1, 2})).ok());
  EXPECT_EQ(relu.Run({"--feed", folder / "x.npy", "--fetch", "z"}).exit_code, 0);
  const CommandResult checked =
      relu.Run({"--feed", folder / "x.npy", "--fetch", "z", "--check-nan-inf"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.err, HasSubstr("log"));
  EXPECT_THAT(checked.err, HasSubstr("'z' float32[1,2] contains a NaN or an infinity"));
}

TEST(RunCommandTest, LodsGoInAndComeOut) {
  const ReluProgram relu;
  const CommandResult result =
      relu.Run({"--feed", "x=random:5x2", "--feed-lod", "x=0,2,5", "--fetch", "y"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("lod [[0,2,5]]"));
}

TEST(RunCommandTest, AProgramWithoutFetchesNeedsSome) {
  const ReluProgram relu;
  const CommandResult result = relu.Run({"--feed", "x=random:1x2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("name variables with --fetch"));
}

}  // namespace
}  // namespace interp::testing
