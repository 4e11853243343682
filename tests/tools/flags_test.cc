// What flags take, and flags that would have no effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "core/io/file.h"
#include "core/io/npz.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing::flags_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/";
const std::string kModel = kDigits + "digits.pdmodel";
const std::string kParams = kDigits + "digits.pdiparams";
const std::string kImage = kDigits + "image.npy";

// What a script passes on where a variable of its own is not set.
TEST(FlagsTest, EmptyValuesAreNotAsIfNothingHadBeenGiven) {
  for (const std::string flag : {"--expect", "--out", "--save", "--trace", "--params", "--feed"}) {
    const CommandResult result = RunInterp({"run", kModel, "--feed", kImage, flag, ""});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr(flag + ": the value is empty"));
  }
}

// Not an error: scripts run many programs in one precision.
TEST(FlagsTest, APrecisionThatComputesNothingIsNoted) {
  const TemporaryFolder folder;
  std::ofstream(folder / "relu.txt") << "program version=0\nblock 0\n  var x float32[2]\n"
                                        "  relu(X=x) -> (Out=y)\n";
  for (const std::string precision : {"bf16", "fp16"}) {
    const CommandResult result = RunInterp({"run", folder / "relu.txt", "--feed", "x=fill:1:2",
                                            "--fetch", "y", "--precision", precision});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("nothing is computed in " + precision));
  }
}

TEST(FlagsTest, ChecksForNaNSeeThroughFusedConvolutions) {
  const TemporaryFolder folder;
  std::ofstream(folder / "conv.txt") << "program version=0\n"
                                        "block 0\n"
                                        "  var x float32[1,1,2,2]\n"
                                        "  var w float32[1,1,1,1] persistable\n"
                                        "  conv2d(Input=x, Filter=w) -> (Output=y)\n"
                                        "  relu(X=y) -> (Out=z)\n";
  ASSERT_TRUE(
      WriteNpz(folder / "w.npz", {{"w", Tensor::Of<float>({1, 1, 1, 1}, {std::nanf("")})}}).ok());
  const CommandResult result =
      RunInterp({"run", folder / "conv.txt", "--params", folder / "w.npz", "--feed",
                 "x=fill:1:1x1x2x2", "--fetch", "z", "--check-nan-inf"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("contains a NaN or an infinity"));
}

TEST(FlagsTest, RepeatableFlagsTakeOneValueSoTheModelMayFollow) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", "--params", kParams, "--feed", kImage, kModel},
           {"run", "--params", kParams, "--feed", kImage, "--fetch", "softmax_0.tmp_0", kModel},
           {"dump", "--feed", "image", kModel},
           {"dump", "--fetch", "softmax_0.tmp_0", kModel},
           {"verify", "--fetch", "softmax_0.tmp_0", kModel},
           {"compile", "-o", folder / "p.plan", "--fetch", "softmax_0.tmp_0", kModel},
           {"verify", "--disable-pass", "fuse_conv", kModel}}) {
    const CommandResult result = RunInterp(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
  }
  const CommandResult result = RunInterp({"run", kModel, "--params", kParams, "--feed", kImage,
                                          "--fetch", "softmax_0.tmp_0", "image"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unexpected argument 'image'"));
}

TEST(FlagsTest, WithoutRepeatNothingIsTimed) {
  const CommandResult text = RunInterp({"run", kModel, "--params", kParams, "--feed", kImage});
  EXPECT_THAT(text.out, HasSubstr("first run"));
  EXPECT_THAT(text.out, Not(HasSubstr("median")));
  const CommandResult result =
      RunInterp({"run", kModel, "--params", kParams, "--feed", kImage, "--json"});
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_GT(report.at("first_ms"), 0);
  EXPECT_EQ(report.at("runs"), 0);
  for (const char* key : {"median_ms", "min_ms", "mean_ms", "p99_ms"}) {
    EXPECT_TRUE(report.at(key).is_null()) << key;
  }
}

TEST(FlagsTest, NumbersThatStartWithZeroAreDecimal) {
  const CommandResult result = RunInterp(
      {"run", kModel, "--params", kParams, "--feed", kImage, "--json", "--repeat", "010"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("runs"), 10);
}

TEST(FlagsTest, ResultsThatCannotBeWrittenAreToldBeforeAnyRun) {
  const TemporaryFolder folder;
  for (const auto& [flag, name] : {std::pair("--out", "none/y.npz"),
                                   {"--trace", "none/t.json"},
                                   {"--save", "none/p.npz"},
                                   {"--random-state", "none/r.txt"}}) {
    // Runs would take hours.
    const CommandResult result = RunInterp({"run", kModel, "--params", kParams, "--feed", kImage,
                                            "--repeat", "100000000", flag, folder / name});
    EXPECT_EQ(result.exit_code, 1) << flag;
    EXPECT_THAT(result.err, HasSubstr(std::string(flag) + ": cannot create '" + (folder / name)));
  }
  std::ofstream(folder / "file") << "x";
  const CommandResult result =
      RunInterp({"run", kModel, "--params", kParams, "--feed", kImage, "--out", folder / "file"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("is no folder"));
}

TEST(FlagsTest, CheckingOutputsLeavesThemAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder / "y.npz") << "old";
  const CommandResult failed =
      RunInterp({"run", kModel, "--params", kParams, "--feed", kImage, "--max-memory", "1K",
                 "--out", folder / "y.npz", "--save", folder / "p.npz"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(*ReadFile(folder / "y.npz"), "old");
  EXPECT_FALSE(ReadFile(folder / "p.npz").ok());
}

// A loop that lasts as long as it may.
std::string EndlessLoop() {
  return "program version=0\n"
         "block 0\n"
         "  var i float32[1]\n"
         "  var zero float32[1]\n"
         "  var go bool[1]\n"
         "  var scopes step_scopes\n"
         "  fill_constant() -> (Out=i) {shape=longs:[1], value=1.0, dtype=5}\n"
         "  fill_constant() -> (Out=zero) {shape=longs:[1], value=0.0, dtype=5}\n"
         "  less_than(X=zero, Y=i) -> (Out=go)\n"
         "  while(X=[i,zero], Condition=go) -> (Out=[i,go], StepScopes=scopes) "
         "{sub_block=block:1}\n"
         "block 1 parent=0\n"
         "  scale(X=i) -> (Out=i) {scale=1.0}\n"
         "  less_than(X=zero, Y=i) -> (Out=go)\n";
}

TEST(FlagsTest, TimeOutsNameTheOpThatWasRunning) {
  const TemporaryFolder folder;
  std::ofstream(folder / "loop.txt") << EndlessLoop();
  const CommandResult result =
      RunInterp({"run", folder / "loop.txt", "--fetch", "i", "--timeout", "50ms"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.err, HasSubstr("while"));
  EXPECT_THAT(result.err, HasSubstr("running when the run's time-out ended"));
}

TEST(FlagsTest, TheTimeOutOfTimedRunsIsNotForTheFirst) {
  const CommandResult result = RunInterp({"run", kModel, "--params", kParams, "--feed", kImage,
                                          "--repeat", "100000000", "--timeout", "1ns"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("time-out"));
}

TEST(FlagsTest, CtrlCShowsWhatWasMeasured) {
  const TemporaryFolder folder;
  std::ofstream(folder / "print.txt") << "program version=0\n"
                                         "block 0\n"
                                         "  var n float32[1] persistable\n"
                                         "  var shown float32[1]\n"
                                         "  increment(X=n) -> (Out=n) {step=1.0}\n"
                                         "  print(In=n) -> (Out=shown) {first_n=3}\n";
  ASSERT_TRUE(WriteNpz(folder / "n.npz", {{"n", Tensor::Of<float>({1}, {0})}}).ok());
  // In the third run one timed run is over.
  const CommandResult result =
      RunInterpAndSignal({"run", folder / "print.txt", "--params", folder / "n.npz", "--fetch",
                          "shown", "--repeat", "100000000", "--json", "--out", folder / "y.npz"},
                         "data: [3]", SIGINT);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.err, HasSubstr("of 100000000 timed runs"));
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report.at("interrupted"), true);
  EXPECT_GT(report.at("runs"), 0);
  EXPECT_GT(report.at("median_ms"), 0);
  EXPECT_FALSE(ReadFile(folder / "y.npz").ok());
}

TEST(FlagsTest, MisspelledCommandsAndFlagsGetAHint) {
  const CommandResult command = RunInterp({"rnu", kModel});
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_THAT(command.err, HasSubstr("no command is named 'rnu'; nearest: 'run'"));
  const CommandResult flag = RunInterp({"run", kModel, "--fedd=x"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.err, HasSubstr("no flag is named '--fedd'; nearest: '--feed'"));
}

}  // namespace
}  // namespace interp::testing::flags_test
