#include "tools/feeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/io/npy.h"
#include "core/io/npz.h"
#include "core/program_parse.h"
#include "tests/testing/command.h"

namespace interp {
namespace {

using ::testing::HasSubstr;

// x --relu--> y; z --relu--> w; both fed, both fetched.
Program TwoChains() {
  return *ParseProgram(
      "program version=0\n"
      "block 0\n"
      "  var feed feed_minibatch\n"
      "  var fetch fetch_list\n"
      "  var x float32[-1,2]\n"
      "  var y float32[-1,2]\n"
      "  var z int64[3]\n"
      "  var w int64[3]\n"
      "  feed(X=feed) -> (Out=x) {col=0}\n"
      "  feed(X=feed) -> (Out=z) {col=1}\n"
      "  relu(X=x) -> (Out=y)\n"
      "  relu(X=z) -> (Out=w)\n"
      "  fetch(X=y) -> (Out=fetch) {col=0}\n"
      "  fetch(X=w) -> (Out=fetch) {col=1}\n");
}

std::string ErrorOf(const FeedFlags& flags) {
  return std::string(ReadFeeds(TwoChains(), flags).status().message());
}

TEST(ReadFeedsTest, FilesFeedTheVariableOfTheirName) {
  const testing::TemporaryFolder folder;
  const Tensor value = Tensor::Of<float>({1, 2}, {1, 2});
  ASSERT_TRUE(WriteNpy(folder / "x.npy", value).ok());
  ASSERT_TRUE(WriteNpz(folder / "both.npz", {{"x", value}, {"y", value}}).ok());
  const auto one = ReadFeeds(TwoChains(), {.feeds = {folder / "x.npy"}, .lods = {}});
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ((*one)[0].first, "x");
  const auto named = ReadFeeds(TwoChains(), {.feeds = {"y=" + (folder / "x.npy")}, .lods = {}});
  ASSERT_TRUE(named.ok()) << named.status().message();
  EXPECT_EQ((*named)[0].first, "y");
  const auto both = ReadFeeds(TwoChains(), {.feeds = {folder / "both.npz"}, .lods = {}});
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->size(), 2u);
}

TEST(ReadFeedsTest, RandomFeedsHaveTheProgramsDTypeAndRepeat) {
  const FeedFlags flags{.feeds = {"x=random:4x2", "z=random"}, .lods = {}, .seed = 7};
  const auto feeds = ReadFeeds(TwoChains(), flags);
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  EXPECT_EQ(DescribeType((*feeds)[0].second), "float32[4,2]");
  EXPECT_EQ(DescribeType((*feeds)[1].second), "int64[3]");
  const auto alone = ReadFeeds(TwoChains(), {.feeds = {"x=random:4x2"}, .lods = {}, .seed = 7});
  EXPECT_EQ((*alone)[0].second.data<float>()[5], (*feeds)[0].second.data<float>()[5]);
}

TEST(ReadFeedsTest, ErrorsNameTheArgument) {
  EXPECT_THAT(ErrorOf({.feeds = {"x=random"}, .lods = {}}),
              HasSubstr("--feed x=random: 'x' has unknown dims, float32[-1,2]"));
  EXPECT_THAT(ErrorOf({.feeds = {"xx=random:2"}, .lods = {}}),
              HasSubstr("'xx'; nearest: 'x'; its inputs are 'x' float32[-1,2], 'z' int64[3]"));
  EXPECT_THAT(ErrorOf({.feeds = {"x=random:1x1x1x1x1x1x1x1x1x1"}, .lods = {}}),
              HasSubstr("at most 9 dims"));
  EXPECT_THAT(ErrorOf({.feeds = {"x=random:4x2", "x=random:4x2"}, .lods = {}}),
              HasSubstr("'x' is fed twice"));
  EXPECT_THAT(ErrorOf({.feeds = {"x=random:99999999999x99999"}, .lods = {}}),
              HasSubstr("at most 4294967296 elements"));
  EXPECT_THAT(ErrorOf({.feeds = {"/nowhere/x.npy"}, .lods = {}}), HasSubstr("/nowhere/x.npy"));
}

TEST(ReadFeedsTest, LodLevelsAreSeparatedBySlashes) {
  const auto feeds = ReadFeeds(TwoChains(), {.feeds = {"x=random:5x2"}, .lods = {"x=0,1,2/0,2,5"}});
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  EXPECT_EQ((*feeds)[0].second.lod, (Lod{{0, 1, 2}, {0, 2, 5}}));
  EXPECT_THAT(ErrorOf({.feeds = {"x=random:5x2"}, .lods = {"x=0,2,6"}}),
              HasSubstr("ends with 6, expected 5"));
  EXPECT_THAT(ErrorOf({.feeds = {"x=random:5x2"}, .lods = {"x=0,b"}}),
              HasSubstr("'b' is no number"));
  EXPECT_THAT(ErrorOf({.feeds = {}, .lods = {"x=0,5"}}), HasSubstr("'x' is not fed"));
}

TEST(CheckNoFeedMissingTest, OnlyWhatTheFetchesDependOnIsMissed) {
  const Program program = TwoChains();
  EXPECT_TRUE(CheckNoFeedMissing(program, {{"x", Tensor()}}, {"y"}, /*all=*/false).ok());
  EXPECT_FALSE(CheckNoFeedMissing(program, {{"x", Tensor()}}, {"y"}, /*all=*/true).ok());
  EXPECT_THAT(std::string(CheckNoFeedMissing(program, {}, {"y", "w"}, false).message()),
              HasSubstr("nothing is fed to 'x' float32[-1,2], 'z' int64[3]"));
}

}  // namespace
}  // namespace interp
