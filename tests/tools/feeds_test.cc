#include "tools/feeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/io/npy.h"
#include "core/io/npz.h"
#include "core/program_parse.h"
#include "tests/testing/command.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
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
  const FeedFlags flags{.feeds = {"x=random:4x2", "z=random"}, .lods = {}, .limits = {.seed = 7}};
  const auto feeds = ReadFeeds(TwoChains(), flags);
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  EXPECT_EQ(DescribeType((*feeds)[0].second), "float32[4,2]");
  EXPECT_EQ(DescribeType((*feeds)[1].second), "int64[3]");
  const auto alone =
      ReadFeeds(TwoChains(), {.feeds = {"x=random:4x2"}, .lods = {}, .limits = {.seed = 7}});
  EXPECT_EQ((*alone)[0].second.data<float>()[5], (*feeds)[0].second.data<float>()[5]);
}

TEST(ReadFeedsTest, FilledFeedsHoldOneValue) {
  const auto feeds = ReadFeeds(TwoChains(), {.feeds = {"x=fill:-1.5:2x2", "z=fill:7"}, .lods = {}});
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  const Tensor& x = (*feeds)[0].second;
  EXPECT_EQ(std::vector<float>(x.data<float>(), x.data<float>() + 4), std::vector<float>(4, -1.5));
  EXPECT_EQ((*feeds)[1].second.data<int64_t>()[2], 7);
  EXPECT_THAT(ErrorOf({.feeds = {"z=fill:7.5"}, .lods = {}}), HasSubstr("'7.5' is no int64"));
  EXPECT_THAT(ErrorOf({.feeds = {"x=fill:one:2x2"}, .lods = {}}), HasSubstr("'one' is no float32"));
  EXPECT_THAT(ErrorOf({.feeds = {"x=fill:1"}, .lods = {}}),
              HasSubstr("'x' has unknown dims, float32[-1,2]; give them as in fill:1:1x3x224x224"));
}

TEST(ReadFeedsTest, AnyByteButZeroOfARawBoolIsTrue) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "b.bin", std::ios::binary) << std::string("\0\1\2\xff", 4);
  const auto feeds =
      ReadFeeds(TwoChains(), {.feeds = {"z=raw:" + (folder / "b.bin") + ":bool:4"}, .lods = {}});
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  const auto* const bytes = static_cast<const char*>((*feeds)[0].second.raw_data());
  EXPECT_EQ(std::string(bytes, 4), std::string("\0\1\1\1", 4));
}

TEST(FilesOfFeedsTest, FilesAreFoundInEveryWayToDescribeThem) {
  const FeedFlags flags{.feeds = {"a.npz", "x=b.npy", "x=random:1x2", "x=fill:1:1x2",
                                  "x=raw:c:d.bin:float32:1x2", "x=image:e.jpg,size=2"},
                        .lods = {}};
  EXPECT_THAT(FilesOfFeeds(TwoChains(), flags),
              ElementsAre("a.npz", "b.npy", "", "", "c:d.bin", "e.jpg"));
}

TEST(ReadFeedsTest, RawFeedsAreTheBytesOfAFile) {
  const testing::TemporaryFolder folder;
  const std::vector<int64_t> numbers = {1, -2, 3};
  const std::string path = folder / "a:b.bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()), 3 * sizeof(int64_t));
  const auto feeds = ReadFeeds(
      TwoChains(), {.feeds = {"z=raw:" + path, "x=raw:" + path + ":float32:3x2"}, .lods = {}});
  ASSERT_TRUE(feeds.ok()) << feeds.status().message();
  EXPECT_EQ((*feeds)[0].second.data<int64_t>()[1], -2);
  EXPECT_EQ(DescribeType((*feeds)[1].second), "float32[3,2]");
  EXPECT_THAT(ErrorOf({.feeds = {"z=raw:" + path + ":int64:4"}, .lods = {}}),
              HasSubstr("holds 24 bytes, but int64[4] needs 32"));
  EXPECT_THAT(
      ErrorOf({.feeds = {"z=raw:" + path}, .lods = {}, .limits = {.max_file_memory = "16"}}),
      HasSubstr("holds 24 bytes, and at most 16 are read"));
  EXPECT_THAT(ErrorOf({.feeds = {"z=raw:/nowhere/z.bin"}, .lods = {}}),
              HasSubstr("cannot read '/nowhere/z.bin'"));
}

TEST(AddRandomFeedsTest, AFirstUnknownDimIsOne) {
  std::vector<NamedTensor> feeds = {{"z", Tensor::Of<int64_t>({3}, {1, 2, 3})}};
  ASSERT_TRUE(AddRandomFeeds(TwoChains(), 7, feeds).ok());
  ASSERT_EQ(feeds.size(), 2u);
  EXPECT_EQ(feeds[1].first, "x");
  EXPECT_EQ(DescribeType(feeds[1].second), "float32[1,2]");
}

TEST(AddRandomFeedsTest, WhatAProgramDeclaresIsBoundedInAll) {
  std::string text = "program version=0\nblock 0\n";
  for (int i = 0; i < 3; ++i) absl::StrAppend(&text, "  var x", i, " float32[2000000000]\n");
  std::vector<NamedTensor> feeds;
  const absl::Status added =
      AddRandomFeeds(*ParseProgram(text), {"x0", "x1", "x2"}, /*seed=*/7, feeds);
  EXPECT_EQ(added.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(added.message()),
              HasSubstr("random feeds take more than 16.00 GiB, 'x2' being float32[2000000000]: "
                        "expected a value or a smaller shape for it"));
  EXPECT_THAT(feeds, ElementsAre());
}

TEST(RepeatFeedTest, SequencesFollowEachOther) {
  Tensor feed = Tensor::Of<float>({3, 1}, {1, 2, 3});
  feed.lod = {{0, 2}, {0, 1, 3}};
  EXPECT_EQ(CountItems(feed), 1);
  const auto twice = RepeatFeed(feed, 2);
  ASSERT_TRUE(twice.ok()) << twice.status().message();
  EXPECT_EQ(DescribeType(*twice), "float32[6,1]");
  EXPECT_EQ(twice->data<float>()[4], 2);
  EXPECT_EQ(twice->lod, (Lod{{0, 2, 4}, {0, 1, 3, 4, 6}}));
  EXPECT_EQ(CountItems(*twice), 2);
  EXPECT_FALSE(RepeatFeed(feed, int64_t{1} << 62).ok());
  EXPECT_FALSE(RepeatFeed(Tensor::Of<float>({}, {1}), 2).ok());
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
