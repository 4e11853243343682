// info, dump, verify, compile and ops from outside: what they print, write and return.
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
using ::testing::Not;
using ::testing::StartsWith;

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

TEST(InfoCommandTest, TheExampleIsOneWordAFeedForAShell) {
  const TemporaryFolder folder;
  std::ofstream(folder / "evil program.txt")
      << "program version=0\nblock 0\n  var feed feed_minibatch persistable\n"
         "  var \"a'$(date)\" float32[-1,2]\n  feed(X=feed) -> (Out=\"a'$(date)\") {col=0}\n";
  const CommandResult result = RunInterp({"info", folder / "evil program.txt"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("try    interp run '" + (folder / "evil program.txt") +
                                    "' --feed 'a'\\''$(date)=random:1x2'\n"));
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
  EXPECT_THAT(compiled.out, HasSubstr("1 feed, 1 fetch"));
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

TEST(CompileCommandTest, APackedPlanRunsWithoutParameters) {
  const TemporaryFolder folder;
  const std::string plan = folder / "digits.plan";
  const CommandResult compiled =
      RunInterp({"compile", kModel, "--params", kDigits + "digits.pdiparams", "--pack", "--shape",
                 "image=1x1x28x28", "-o", plan});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr(" parameters, "));
  EXPECT_THAT(compiled.out, HasSubstr(" packed constants of "));
  const CommandResult result =
      RunInterp({"run", plan, "--feed", kDigits + "image.npy", "--out", folder / "plan.npz"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  ASSERT_EQ(RunDigits({"--out", folder / "program.npz"}).exit_code, 0);
  EXPECT_EQ(*ReadFile(folder / "plan.npz"), *ReadFile(folder / "program.npz"));
  EXPECT_EQ(RunInterp({"dump", plan}).out, RunInterp({"dump", kModel}).out);
  EXPECT_EQ(RunInterp({"verify", plan}).exit_code, 0);
}

TEST(CompileCommandTest, OtherParametersTakeThePlaceOfPackedOnes) {
  const TemporaryFolder folder;
  const std::string plan = folder / "digits.plan";
  const std::string params = kDigits + "digits.pdiparams";
  ASSERT_EQ(RunInterp({"compile", kModel, "--params", params, "--pack", "-o", plan}).exit_code, 0);
  const CommandResult result =
      RunInterp({"run", plan, "--params", params, "--feed", kDigits + "image.npy", "--expect",
                 kDigits + "expected.npz"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("other parameters were given"));
}

// An index that is random may lie outside of what it indexes.
TEST(CompileCommandTest, AProgramThatRefusesRandomFeedsIsPackedOnGivenOnes) {
  const TemporaryFolder folder;
  const std::string program = folder / "words.txt";
  const std::string plan = folder / "words.plan";
  std::ofstream(program) << "program version=0\n"
                            "block 0\n"
                            "  var w float32[1,2] param\n"
                            "  var ids int64[-1,1] lod=1\n"
                            "  var rows float32[-1,2] lod=1\n"
                            "  var y float32[-1,2] lod=1\n"
                            "  lookup_table(W=w, Ids=ids) -> (Out=rows)\n"
                            "  sequence_pool(X=rows) -> (Out=y) {pooltype=\"SUM\"}\n";
  ASSERT_TRUE(WriteNpz(folder / "w.npz", {{"w", Tensor::Of<float>({1, 2}, {1, 2})}}).ok());
  ASSERT_TRUE(WriteNpy(folder / "ids.npy", Tensor::Of<int64_t>({3, 1}, {0, 0, 0})).ok());
  const std::vector<std::string> command = {
      "compile", program, "--pack", "--params", folder / "w.npz", "--fetch", "y", "-o", plan};
  std::vector<std::string> random = command;
  random.insert(random.end(), {"--feed", "ids", "--shape", "ids=9x1"});
  const CommandResult refused = RunInterp(random);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("'Ids' has the value 1"));
  const std::vector<std::string> feeds = {"--feed", folder / "ids.npy", "--feed-lod", "ids=0,1,3"};
  std::vector<std::string> given = command;
  given.insert(given.end(), feeds.begin(), feeds.end());
  const CommandResult packed = RunInterp(given);
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr(" 1 feed, 1 fetch"));
  std::vector<std::string> run = {"run", plan};
  run.insert(run.end(), feeds.begin(), feeds.end());
  const CommandResult result = RunInterp(run);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("values 1 2 2 4"));
}

TEST(CompileCommandTest, PackingNeedsNoInputThatThePlanDoesNotFeed) {
  const TemporaryFolder folder;
  std::ofstream(folder / "two.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var x float32[-1,2] check_feed\n"
                                       "  var unused float32[-1,-1] check_feed\n"
                                       "  var y float32[-1,2]\n"
                                       "  relu(X=x) -> (Out=y)\n";
  const std::vector<std::string> command = {
      "compile", folder / "two.txt", "-o", folder / "two.plan", "--feed", "x", "--fetch", "y",
      "--pack"};
  const CommandResult packed = RunInterp(command);
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  std::vector<std::string> shaped = command;
  shaped.insert(shaped.end(), {"--shape", "unused=1x1"});
  const CommandResult unfed = RunInterp(shaped);
  EXPECT_EQ(unfed.exit_code, 2);
  EXPECT_THAT(unfed.err, HasSubstr("--shape: the plan does not feed 'unused'"));
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
