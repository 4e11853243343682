// The command line from outside: what it prints, writes and returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/io/file.h"
#include "core/io/npy.h"
#include "core/io/npz.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/";
const std::string kModel = kDigits + "digits.pdmodel";
const std::string kOutput = "save_infer_model/scale_0.tmp_0";

// `interp run` on the digit classifier, with more arguments.
CommandResult RunDigits(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "run", kModel, "--params", kDigits + "digits.pdiparams", "--feed", kDigits + "image.npy"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunInterp(arguments);
}

// A program that needs no parameters: x --relu--> y.
class ReluProgram {
 public:
  ReluProgram() {
    std::ofstream(path()) << "program version=0\n"
                             "block 0\n"
                             "  var x float32[-1,2] check_feed\n"
                             "  var y float32[-1,2]\n"
                             "  var z float32[-1,2]\n"
                             "  relu(X=x) -> (Out=y)\n"
                             "  log(X=y) -> (Out=z)\n";
  }
  std::string path() const { return folder_ / "relu.txt"; }
  CommandResult Run(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run", path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunInterp(arguments);
  }

 private:
  TemporaryFolder folder_;
};

TEST(RunCommandTest, ReadsTheDigitAsPaddleDoes) {
  const CommandResult result = RunDigits({"--expect", kDigits + "expected.npz"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr(kOutput + "  float32  [1,10]"));
  EXPECT_THAT(result.out, HasSubstr(kOutput + ": ok"));
  EXPECT_THAT(result.out, HasSubstr("peak memory"));
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
    EXPECT_EQ(row.contains("gb_per_s"), row.at("op") != "feed" && row.at("op") != "fetch") << row;
  }
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

TEST(InfoCommandTest, TellsWhatTheProgramNeeds) {
  const CommandResult text = RunInterp({"info", kModel, "--params", kDigits + "digits.pdiparams"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Paddle 2.6.2"));
  EXPECT_THAT(text.out, HasSubstr("image  float32[-1,1,28,28]"));
  EXPECT_THAT(text.out, HasSubstr("unsupported ops none"));
  const CommandResult result = RunInterp({"info", kModel, "--json"});
  const auto info = nlohmann::json::parse(result.out);
  EXPECT_EQ(info.at("parameters").at("count"), 17);
  EXPECT_EQ(info.at("ops").at("conv2d"), 3);
  EXPECT_GT(info.at("estimated_peak_bytes"), 0);
}

TEST(InfoCommandTest, ListsAllUnsupportedOpsAtOnce) {
  const TemporaryFolder folder;
  std::ofstream(folder / "odd.txt") << "program version=0\nblock 0\n  var x float32[2]\n"
                                       "  var y float32[2]\n  var z float32[2]\n"
                                       "  made_up_b(X=x) -> (Out=y)\n  made_up_a(X=y) -> (Out=z)\n";
  const CommandResult result = RunInterp({"info", folder / "odd.txt"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("unsupported ops made_up_a made_up_b"));
}

TEST(DumpCommandTest, EveryStageInEveryFormatIsStable) {
  for (const char* stage : {"program", "passes", "deps", "plan"}) {
    for (const char* format : {"text", "json", "dot"}) {
      const CommandResult first = RunInterp({"dump", kModel, "--stage", stage, "--format", format});
      const CommandResult second =
          RunInterp({"dump", kModel, "--stage", stage, "--format", format});
      EXPECT_EQ(first.exit_code, 0) << stage << " " << format << "\n" << first.err;
      EXPECT_THAT(first.out, Not(IsEmpty()));
      EXPECT_EQ(first.out, second.out);
      if (std::string(format) == "json") {
        EXPECT_TRUE(nlohmann::json::accept(first.out)) << stage;
      }
    }
  }
}

TEST(DumpCommandTest, FormatsBelongToStages) {
  for (const char* stage : {"deps", "plan"}) {
    const CommandResult page = RunInterp({"dump", kModel, "--stage", stage, "--format", "html"});
    EXPECT_EQ(page.exit_code, 0) << page.err;
    EXPECT_THAT(page.out, StartsWith("<!doctype html>"));
    EXPECT_THAT(page.out, HasSubstr("\"title\":\"digits.pdmodel\""));
    const CommandResult bytes = RunInterp({"dump", kModel, "--stage", stage, "--format", "pb"});
    EXPECT_EQ(bytes.exit_code, 2);
    EXPECT_THAT(bytes.err, HasSubstr("--format pb is for programs"));
  }
}

TEST(DumpCommandTest, PagesOfProgramsHoldWhatInfoTellsAndTheParametersBesideThem) {
  for (const char* stage : {"program", "passes"}) {
    const CommandResult page = RunInterp({"dump", kModel, "--stage", stage, "--format", "html"});
    EXPECT_EQ(page.exit_code, 0) << page.err;
    EXPECT_THAT(page.out, StartsWith("<!doctype html>"));
    for (const char* part : {"\"title\":\"digits.pdmodel\"", "[\"Loaded\",", "\"histogram\":["}) {
      EXPECT_THAT(page.out, HasSubstr(part)) << stage;
    }
  }
}

TEST(DumpCommandTest, PageOfAProgramWhoseParametersCannotBeReadSaysSo) {
  const TemporaryFolder folder;
  std::filesystem::copy(kModel, folder / "digits.pdmodel");
  std::ofstream(folder / "digits.pdiparams") << "no parameters";
  const CommandResult page =
      RunInterp({"dump", folder / "digits.pdmodel", "--stage", "program", "--format", "html"});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("[\"Not loaded\","));
  const CommandResult named =
      RunInterp({"dump", folder / "digits.pdmodel", "--stage", "program", "--format", "html",
                 "--params", folder / "digits.pdiparams"});
  EXPECT_EQ(named.exit_code, 4) << named.out;
}

TEST(DumpCommandTest, TextAndBytesLeadBackToTheProgram) {
  const TemporaryFolder folder;
  const CommandResult text = RunInterp({"dump", kModel, "--stage", "program"});
  std::ofstream(folder / "digits.txt") << text.out;
  EXPECT_EQ(RunInterp({"dump", folder / "digits.txt", "--stage", "program"}).out, text.out);
  const CommandResult bytes =
      RunInterp({"dump", folder / "digits.txt", "--stage", "program", "--format", "pb"});
  std::ofstream(folder / "digits.pdmodel") << bytes.out;
  EXPECT_EQ(RunInterp({"dump", folder / "digits.pdmodel", "--stage", "program"}).out, text.out);
}

TEST(VerifyCommandTest, ProvesPlansOfHostAndDevice) {
  for (const std::string place : {"cpu", "sim"}) {
    const CommandResult text = RunInterp({"verify", kModel, "--place", place});
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("digits.pdmodel: proved\n"));
    const CommandResult result = RunInterp({"verify", kModel, "--place", place, "--json"});
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json["proved"], true);
    EXPECT_EQ(json["events"].get<int>() > 0, place == "sim");
  }
  EXPECT_EQ(RunInterp({"verify", kModel, "--fetch", "nothing"}).exit_code, 2);
  EXPECT_EQ(RunInterp({"verify", kDigits + "image.npy"}).exit_code, 4);
}

TEST(CompileCommandTest, APlanRunsLikeItsProgram) {
  const TemporaryFolder folder;
  const std::string plan = folder / "digits.plan";
  const CommandResult compiled = RunInterp({"compile", kModel, "-o", plan});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("1 feeds, 1 fetches"));
  const CommandResult result =
      RunInterp({"run", plan, "--params", kDigits + "digits.pdiparams", "--feed",
                 kDigits + "image.npy", "--expect", kDigits + "expected.npz", "--out",
                 folder / "plan.npz", "--compiled-from", kModel});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(RunDigits({"--out", folder / "program.npz"}).exit_code, 0);
  EXPECT_EQ(*ReadFile(folder / "plan.npz"), *ReadFile(folder / "program.npz"));
  EXPECT_EQ(RunInterp({"dump", plan}).out, RunInterp({"dump", kModel}).out);
  EXPECT_EQ(RunInterp({"verify", plan}).exit_code, 0);
  EXPECT_THAT(RunInterp({"info", plan}).out, HasSubstr("memory about"));
}

TEST(CompileCommandTest, APlanHasItsFeedsFetchesAndFlags) {
  const ReluProgram program;
  const TemporaryFolder folder;
  const std::string plan = folder / "relu.plan";
  const CommandResult compiled = RunInterp({"compile", program.path(), "-o", plan, "--feed", "x",
                                            "--fetch", "z", "--fetch", "y", "--in-order"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", plan};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunInterp(arguments);
  };
  const CommandResult one = run({"--feed", "x=random:1x2", "--fetch", "y"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("y      float32  [1,2]"));
  EXPECT_THAT(one.out, Not(HasSubstr("\nz ")));

  const CommandResult fetch = run({"--feed", "x=random:1x2", "--fetch", "x"});
  EXPECT_EQ(fetch.exit_code, 2);
  EXPECT_THAT(fetch.err, HasSubstr("the plan does not fetch 'x', only: z y"));
  const CommandResult missing = run({});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("the plan needs feeds that are missing: x"));
  const CommandResult extra = run({"--feed", "x=random:1x2", "--feed", "y=random:1x2"});
  EXPECT_EQ(extra.exit_code, 2);
  EXPECT_THAT(extra.err, HasSubstr("the plan does not feed 'y'"));
  const CommandResult flag = run({"--feed", "x=random:1x2", "--no-gc"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.err, HasSubstr("--no-gc is decided when a plan is compiled"));
  EXPECT_EQ(RunInterp({"dump", plan, "--fetch", "y"}).exit_code, 2);
  EXPECT_EQ(RunInterp({"dump", plan, "--stage", "program"}).exit_code, 2);
  EXPECT_EQ(RunInterp({"compile", plan, "-o", folder / "again.plan"}).exit_code, 2);
}

TEST(CompileCommandTest, PlansOfOtherProgramsAndDamagedOnesAreRefused) {
  const ReluProgram program;
  const TemporaryFolder folder;
  const std::string plan = folder / "digits.plan";
  ASSERT_EQ(RunInterp({"compile", kModel, "-o", plan}).exit_code, 0);
  const CommandResult other = RunInterp({"run", plan, "--compiled-from", program.path()});
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_THAT(other.err, HasSubstr("compiled from another program than"));
  const std::string bytes = *ReadFile(plan);
  std::ofstream(folder / "cut.plan") << bytes.substr(0, bytes.size() / 2);
  const CommandResult cut = RunInterp({"run", folder / "cut.plan"});
  EXPECT_EQ(cut.exit_code, 4);
  EXPECT_THAT(cut.err, HasSubstr("cut.plan: cut off or damaged"));
}

TEST(OpsCommandTest, ListIsTheExpectedOne) {
  const std::string path = std::string(INTERP_SOURCE_DIR) + "/tests/tools/ops.txt";
  const CommandResult result = RunInterp({"ops"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << result.out;
  const absl::StatusOr<std::string> expected = ReadFile(path);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_EQ(result.out, *expected) << "UPDATE_GOLDEN=1 rewrites tests/tools/ops.txt";
}

TEST(OpsCommandTest, UnknownOpsGetAHint) {
  const CommandResult result = RunInterp({"ops", "rellu"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no op named 'rellu'; nearest: 'relu'"));
}

}  // namespace
}  // namespace interp::testing
