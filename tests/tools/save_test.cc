// interp run --save: the parameters as they are after the last run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/io/file.h"
#include "core/io/npz.h"
#include "tests/testing/command.h"

namespace interp::testing::save_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/";

// A program that makes the parameters `b` and `w`, and one that adds `x` to `w` in every run.
class CountingProgram {
 public:
  CountingProgram() {
    std::ofstream(startup())
        << "program version=0\n"
           "block 0\n"
           "  var b float32[1] persistable\n"
           "  var w float32[2] persistable\n"
           "  fill_constant() -> (Out=b) {dtype=5, shape=longs:[1], value=7}\n"
           "  fill_constant() -> (Out=w) {dtype=5, shape=longs:[2], value=0.5}\n";
    std::ofstream(main()) << "program version=0\n"
                             "block 0\n"
                             "  var b float32[1] persistable\n"
                             "  var w float32[2] persistable\n"
                             "  var x float32[2] check_feed\n"
                             "  elementwise_add(X=w, Y=x) -> (Out=w) {axis=-1}\n";
    EXPECT_TRUE(WriteNpz(feed(), {{"x", Tensor::Of<float>({2}, {1, 2})}}).ok());
  }
  std::string startup() const { return folder_ / "startup.txt"; }
  std::string main() const { return folder_ / "main.txt"; }
  std::string feed() const { return folder_ / "x.npz"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }

  // Runs the main program with the parameters that the startup program makes.
  CommandResult Run(const std::vector<std::string>& more) const {
    const std::string params = folder_ / "made.pdiparams";
    const CommandResult made = RunInterp({"run", startup(), "--save", params});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    std::vector<std::string> arguments = {"run", main(), "--params", params, "--feed", feed()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunInterp(arguments);
  }

 private:
  TemporaryFolder folder_;
};

// The tensors of a file as "name[elements]".
std::vector<std::string> Saved(const std::string& path) {
  const absl::StatusOr<std::vector<NamedTensor>> tensors = ReadNpz(path);
  EXPECT_TRUE(tensors.ok()) << tensors.status().message();
  std::vector<std::string> texts;
  if (!tensors.ok()) return texts;
  for (const auto& [name, tensor] : *tensors) {
    std::string text = name;
    for (int64_t i = 0; i < tensor.numel(); ++i)
      absl::StrAppend(&text, " ", tensor.data<float>()[i]);
    texts.push_back(text);
  }
  return texts;
}

// What `run --save` leaves of a plan of the program, compiled with `flags`.
struct PlanRun {
  CommandResult result;
  std::vector<std::string> saved;
};
PlanRun RunPlan(const std::string& program, const std::string& params,
                const std::vector<std::string>& flags) {
  const TemporaryFolder folder;
  const std::string plan = folder / "main.plan";
  std::vector<std::string> compile = {"compile", program, "-o", plan};
  compile.insert(compile.end(), flags.begin(), flags.end());
  const CommandResult compiled = RunInterp(compile);
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  const std::string left = folder / "left.npz";
  std::vector<std::string> run = {"run", plan, "--save", left};
  if (!params.empty()) run.insert(run.end(), {"--params", params});
  PlanRun done{.result = RunInterp(run), .saved = {}};
  if (done.result.exit_code == 0) done.saved = Saved(left);
  return done;
}

TEST(SaveTest, ParametersThatNothingWroteAreTheFileTheyCameFrom) {
  const TemporaryFolder folder;
  const std::string copy = folder / "copy.pdiparams";
  const CommandResult run =
      RunInterp({"run", kDigits + "digits.pdmodel", "--params", kDigits + "digits.pdiparams",
                 "--feed", kDigits + "image.npy", "--save", copy});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const absl::StatusOr<std::string> saved = ReadFile(copy);
  ASSERT_TRUE(saved.ok());
  EXPECT_TRUE(*saved == *ReadFile(kDigits + "digits.pdiparams"));
}

// `v` is written before it is read: the run's own, unless somebody wants what runs leave.
TEST(SaveTest, WhatEachRunWritesFirstIsSaved) {
  const TemporaryFolder folder;
  const std::string program = folder / "main.txt";
  std::ofstream(program) << "program version=0\n"
                            "block 0\n"
                            "  var v float32[2] persistable\n"
                            "  var w float32[2] persistable\n"
                            "  var y float32[2]\n"
                            "  scale(X=w) -> (Out=v) {scale=2.0}\n"
                            "  scale(X=v) -> (Out=y) {scale=2.0}\n";
  const std::string params = folder / "in.npz";
  ASSERT_TRUE(WriteNpz(params, {{"v", Tensor::Of<float>({2}, {0, 0})},
                                {"w", Tensor::Of<float>({2}, {1, 2})}})
                  .ok());
  const std::string combined = folder / "all.pdiparams";
  const CommandResult run =
      RunInterp({"run", program, "--params", params, "--fetch", "y", "--save", combined});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(RunPlan(program, combined, {"--fetch", "y"}).result.err,
              HasSubstr("runs of the plan keep 'v'"));
  EXPECT_THAT(
      RunPlan(program, combined, {"--fetch", "y", "--disable-pass=local_temporaries"}).saved,
      ElementsAre("v 2 4", "w 1 2"));
}

// A start-up program: nobody fetches, so what it leaves is what it is for.
TEST(SaveTest, PlansOfWhatFetchesNothingKeepAll) {
  const TemporaryFolder folder;
  const std::string program = folder / "startup.txt";
  std::ofstream(program) << "program version=0\n"
                            "block 0\n"
                            "  var w float32[2] persistable\n"
                            "  var average float32[2] persistable\n"
                            "  fill_constant() -> (Out=w) {dtype=5, shape=longs:[2], value=3}\n"
                            "  assign(X=w) -> (Out=average)\n";
  EXPECT_THAT(RunPlan(program, "", {}).saved, ElementsAre("average 3 3", "w 3 3"));
}

TEST(SaveTest, WritesWhatTheLastRunLeft) {
  const CountingProgram program;
  ASSERT_EQ(program.Run({"--repeat", "3", "--save", program / "w.npz"}).exit_code, 0);
  EXPECT_THAT(Saved(program / "w.npz"), ElementsAre("b 7", "w 4.5 8.5"));
}

TEST(SaveTest, ParametersMayBeWrittenAnewWhereTheyLie) {
  const CountingProgram program;
  const std::string params = program / "w.npz";
  ASSERT_EQ(program.Run({"--save", params}).exit_code, 0);
  const CommandResult again = RunInterp(
      {"run", program.main(), "--params", params, "--feed", program.feed(), "--save", params});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(Saved(params), ElementsAre("b 7", "w 2.5 4.5"));
}

TEST(SaveTest, SavedParametersCanBeLoadedAgain) {
  const CountingProgram program;
  const std::string params = program / "w.pdiparams";
  ASSERT_EQ(program.Run({"--save", params}).exit_code, 0);
  const CommandResult again = RunInterp({"run", program.main(), "--params", params, "--feed",
                                         program.feed(), "--save", program / "w.npz"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(Saved(program / "w.npz"), ElementsAre("b 7", "w 2.5 4.5"));
}

TEST(SaveTest, ParametersOnADeviceComeBack) {
  const CountingProgram program;
  const CommandResult run =
      program.Run({"--place", "sim:0", "--repeat", "1", "--save", program / "w.npz"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(Saved(program / "w.npz"), ElementsAre("b 7", "w 2.5 4.5"));
}

TEST(SaveTest, APlanFileSavesItsParameters) {
  const CountingProgram program;
  const std::string plan = program / "startup.plan";
  const CommandResult compiled = RunInterp({"compile", program.startup(), "-o", plan});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CommandResult run = RunInterp({"run", plan, "--save", program / "w.npz"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(Saved(program / "w.npz"), ElementsAre("b 7", "w 0.5 0.5"));
}

TEST(SaveTest, VariablesWithoutAValueAreNamedOrLeftOut) {
  const CountingProgram program;
  std::ofstream(program / "half.txt")
      << "program version=0\n"
         "block 0\n"
         "  var b float32[1] persistable\n"
         "  var w float32[2] persistable\n"
         "  fill_constant() -> (Out=w) {dtype=5, shape=longs:[2], value=0.5}\n";
  ASSERT_EQ(RunInterp({"run", program / "half.txt", "--save", program / "w.npz"}).exit_code, 0);
  EXPECT_THAT(Saved(program / "w.npz"), ElementsAre("w 0.5 0.5"));
  const CommandResult combined =
      RunInterp({"run", program / "half.txt", "--save", program / "w.pdiparams"});
  EXPECT_EQ(combined.exit_code, 1);
  EXPECT_THAT(combined.err, AllOf(HasSubstr("--save: 'b' has no value"), HasSubstr("to .npz")));
  EXPECT_FALSE(std::filesystem::exists(program / "w.pdiparams"));
}

TEST(SaveTest, WhatCannotBeSavedIsSaidBeforeTheRun) {
  const CountingProgram program;
  const CommandResult ending = program.Run({"--save", program / "w.params"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_THAT(ending.err, HasSubstr("w.params' ends in neither .pdiparams nor .npz"));
  std::ofstream(program / "none.txt") << "program version=0\n"
                                         "block 0\n"
                                         "  var x float32[2] check_feed\n"
                                         "  var y float32[2]\n"
                                         "  relu(X=x) -> (Out=y)\n";
  const CommandResult none = RunInterp(
      {"run", program / "none.txt", "--feed", program.feed(), "--save", program / "w.npz"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("the program has no persistable tensors"));
}

TEST(SaveTest, WriteErrorsFailTheCommandAndLeaveTheOldFile) {
  const CountingProgram program;
  EXPECT_EQ(program.Run({"--save", program / "no/such/folder/w.npz"}).exit_code, 1);
  for (const std::string ending : {".npz", ".pdiparams"}) {
    const std::string full = program / ("full" + ending);
    std::filesystem::create_symlink("/dev/full", full);
    const CommandResult result = program.Run({"--save", full});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, AllOf(HasSubstr("--save: "), HasSubstr("No space left on device")));
  }
  const std::string kept = program / "kept.npz";
  std::ofstream(kept) << "old";
  std::ofstream(program / "bad.txt") << "program version=0\n"
                                        "block 0\n"
                                        "  var w float32[2] persistable\n"
                                        "  var x float32[2] check_feed\n"
                                        "  elementwise_add(X=w, Y=x) -> (Out=w) {axis=-1}\n";
  EXPECT_EQ(
      RunInterp({"run", program / "bad.txt", "--feed", program.feed(), "--save", kept}).exit_code,
      1);
  EXPECT_EQ(*ReadFile(kept), "old");
}

}  // namespace
}  // namespace interp::testing::save_test
