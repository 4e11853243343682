// `interp info --shape`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing::info_shape_test {
namespace {

using ::testing::HasSubstr;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/digits.pdmodel";

nlohmann::json ShapeOf(const nlohmann::json& report, const std::string& name) {
  for (const auto& var : report["shapes"]) {
    if (var["name"] == name) return var["shape"];
  }
  return nullptr;
}

TEST(InfoShapeTest, GivesEveryVariableAndTheMemoryOverTime) {
  const CommandResult result = RunInterp({"info", kDigits, "--shape", "image=3x1x28x28", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(ShapeOf(report, "conv2d_0.tmp_0"), nlohmann::json({3, 8, 28, 28}));
  EXPECT_EQ(ShapeOf(report, "conv2d_1.w_0"), nlohmann::json({16, 8, 3, 3}));
  EXPECT_EQ(ShapeOf(report, "softmax_0.tmp_0"), nlohmann::json({3, 10}));
  EXPECT_FALSE(report["zero_parameters"]);
  uint64_t most = 0;
  for (const auto& point : report["memory_over_time"]) {
    most = std::max(most, point["alive_bytes"].get<uint64_t>());
  }
  EXPECT_GE(most, 3u * 8 * 28 * 28 * 4);
  EXPECT_GE(report["peak_bytes"], most);
}

// Random indices would be beyond the one row, and random lengths none of two sequences.
TEST(InfoShapeTest, FeedsWhatCountsByItsValues) {
  const TemporaryFolder folder;
  std::ofstream(folder / "net.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var x float32[-1,2] lod=1\n"
                                       "  var i int64[-1]\n"
                                       "  var p float32[-1,2]\n"
                                       "  var y float32[-1,2]\n"
                                       "  sequence_pool(X=x) -> (Out=p, MaxIndex=m) "
                                       "{pooltype=\"SUM\"}\n"
                                       "  gather(X=p, Index=i) -> (Out=y)\n";
  const std::string net = folder / "net.txt";
  const CommandResult result = RunInterp(
      {"info", net, "--shape", "x=5x2", "--feed-lod", "x=0,2,5", "--feed", "i=fill:1:3", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(ShapeOf(report, "p"), nlohmann::json({2, 2}));
  EXPECT_EQ(ShapeOf(report, "y"), nlohmann::json({3, 2}));
}

// A few lines may declare more than any machine has.
TEST(InfoShapeTest, ParametersThatAreNotThereHaveABound) {
  const TemporaryFolder folder;
  std::ofstream file(folder / "net.txt");
  file << "program version=0\nblock 0\n  var x float32[-1,4] check_feed\n  var y float32[-1,4]\n";
  for (int i = 0; i < 9; ++i) file << "  var w" << i << " float32[1024,512,1024] persistable\n";
  file << "  relu(X=x) -> (Out=y)\n";
  file.close();
  const CommandResult result = RunInterp({"info", folder / "net.txt", "--shape", "x=5x4"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("the parameters without a value take more than 16"));
}

TEST(InfoShapeTest, TakesParametersThatAreNotThereAsZero) {
  const TemporaryFolder folder;
  std::ofstream(folder / "net.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var feed feed_minibatch\n"
                                       "  var fetch fetch_list\n"
                                       "  var x float32[-1,4]\n"
                                       "  var w float32[4,3] persistable\n"
                                       "  var y float32[-1,3]\n"
                                       "  feed(X=feed) -> (Out=x) {col=0}\n"
                                       "  matmul_v2(X=x, Y=w) -> (Out=y)\n"
                                       "  fetch(X=y) -> (Out=fetch) {col=0}\n";
  const CommandResult result =
      RunInterp({"info", folder / "net.txt", "--shape", "x=5x4", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_TRUE(report["zero_parameters"]);
  EXPECT_EQ(ShapeOf(report, "y"), nlohmann::json({5, 3}));
  const CommandResult text = RunInterp({"info", folder / "net.txt", "--shape", "x=5x4"});
  EXPECT_THAT(text.out, HasSubstr("taken as zero"));
  EXPECT_THAT(text.out, HasSubstr("--feed x=random:1x4"));
}

TEST(InfoShapeTest, BadShapesAreExplained) {
  const auto error = [](const std::string& shape) {
    const CommandResult result = RunInterp({"info", kDigits, "--shape", shape});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(error("image"), HasSubstr("expected NAME=DIMS"));
  EXPECT_THAT(error("picture=1x1"), HasSubstr("no variable 'picture'"));
  EXPECT_THAT(error("image=1x1x27x28"), HasSubstr("expected float32[-1,1,28,28]"));
  EXPECT_THAT(error("image=1x1xAx28"), HasSubstr("is no shape"));
}

}  // namespace
}  // namespace interp::testing::info_shape_test
