#include "interpreter/train/merge_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interpreter/train/split_batch.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

absl::StatusOr<Tensor> Merged(const std::vector<Tensor>& parts, Merge merge,
                              const std::vector<double>& weights, int slices = 3) {
  MergedValue value;
  INTERP_RETURN_IF_ERROR(value.Begin(parts, merge, weights));
  for (int slice = 0; slice < slices; ++slice) value.MergeSlice(slice, slices);
  value.Finish();
  return value.result();
}

TEST(MergedValueTest, MeansAreWeighted) {
  const auto merged =
      Merged({VectorOf<float>({4, 8}), VectorOf<float>({8, 0})}, Merge::kMean, {0.75, 0.25});
  ASSERT_THAT(merged, IsOk());
  EXPECT_THAT(Values<float>(*merged), ElementsAre(5, 6));
  const auto half =
      Merged({VectorOf<float16>({4, 8}), VectorOf<float16>({8, 0})}, Merge::kMean, {0.75, 0.25});
  ASSERT_THAT(half, IsOk());
  EXPECT_THAT(Values<float16>(*half), ElementsAre(5, 6));
}

TEST(MergedValueTest, SlicesChangeNoBits) {
  std::vector<Tensor> parts(3);
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<float> values(5000);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 1.0F / static_cast<float>(i * (p + 2) + 1);
    }
    parts[p] = VectorOf<float>(values);
  }
  const auto whole = Merged(parts, Merge::kMean, {0.4, 0.3, 0.3}, /*slices=*/1);
  ASSERT_THAT(whole, IsOk());
  for (const int slices : {2, 3, 7, 16}) {
    EXPECT_TRUE(SameBits(*Merged(parts, Merge::kMean, {0.4, 0.3, 0.3}, slices), *whole)) << slices;
  }
}

TEST(MergedValueTest, TheFirstPartsMemoryIsUsedWhereNobodyElseHoldsIt) {
  const std::vector<float> values = {4, 8};
  for (const bool held : {false, true}) {
    std::vector<Tensor> parts = {VectorOf<float>(values), VectorOf<float>({8, 0})};
    const Tensor other = held ? parts[0] : Tensor();
    const void* const memory = parts[0].raw_data();
    MergedValue value;
    ASSERT_THAT(value.Begin(std::move(parts), Merge::kMean, {0.5, 0.5}), IsOk());
    value.MergeSlice(0, 1);
    value.Finish();
    EXPECT_THAT(Values<float>(value.result()), ElementsAre(6, 4));
    EXPECT_EQ(value.result().raw_data() == memory, !held);
    if (held) {
      EXPECT_EQ(Values<float>(other), values);
    }
  }
}

TEST(MergedValueTest, RowsFollowEachOther) {
  const Tensor two = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor one = Tensor::Of<float>({1, 2}, {5, 6});
  const auto rows = Merged({two, one}, Merge::kRows, {0.5, 0.5});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->shape, (Shape{3, 2}));
  EXPECT_THAT(Values<float>(*rows), ElementsAre(1, 2, 3, 4, 5, 6));
  const auto scaled = Merged({two, one}, Merge::kScaledRows, {0.5, 2});
  ASSERT_THAT(scaled, IsOk());
  EXPECT_THAT(Values<float>(*scaled), ElementsAre(0.5, 1, 1.5, 2, 10, 12));
}

TEST(MergedValueTest, IntegersAreTheSame) {
  const auto merged =
      Merged({VectorOf<int64_t>({7}), VectorOf<int64_t>({7})}, Merge::kMean, {1, 1});
  ASSERT_THAT(merged, IsOk());
  EXPECT_THAT(Values<int64_t>(*merged), ElementsAre(7));
}

TEST(MergedValueTest, SaysWhatDoesNotFit) {
  const auto merge = [](const Tensor& a, const Tensor& b, Merge merge) {
    return Merged({a, b}, merge, {0.5, 0.5}).status();
  };
  const auto fails = [](const std::string& part) {
    return FailsWith(StatusCode::kInvalidArgument, part);
  };
  EXPECT_THAT(merge(VectorOf<float>({1}), VectorOf<double>({1}), Merge::kMean),
              fails("is float32[1] in share 0 and float64[1] in share 1"));
  EXPECT_THAT(merge(VectorOf<float>({1}), VectorOf<float>({1, 2}), Merge::kMean),
              fails("expected one shape"));
  EXPECT_THAT(merge(VectorOf<int32_t>({1}), VectorOf<int32_t>({2}), Merge::kMean),
              fails("differs between shares"));
  EXPECT_THAT(
      merge(Tensor::Of<float>({1, 2}, {1, 2}), Tensor::Of<float>({1, 1}, {1}), Merge::kRows),
      fails("expected rows of one shape"));
}

TEST(SplitBatchTest, SharesAreEvenAndInOrder) {
  const std::vector<FeedSpec> feeds = {{.name = "x", .dtype = DType::kFloat32, .shape = {-1}},
                                       {.name = "c", .dtype = DType::kFloat32, .shape = {2}}};
  const std::vector<Tensor> batch = {VectorOf<float>({1, 2, 3, 4, 5, 6, 7}),
                                     VectorOf<float>({8, 9})};
  const auto shares = SplitBatch(batch, feeds, 3);
  ASSERT_THAT(shares, IsOk());
  ASSERT_EQ(shares->size(), 3u);
  EXPECT_THAT(Values<float>((*shares)[0].feeds[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(Values<float>((*shares)[1].feeds[0]), ElementsAre(4, 5));
  EXPECT_THAT(Values<float>((*shares)[2].feeds[0]), ElementsAre(6, 7));
  for (const BatchShare& share : *shares) {
    EXPECT_EQ(share.num_samples, share.feeds[0].shape[0]);
    EXPECT_THAT(Values<float>(share.feeds[1]), ElementsAre(8, 9));
  }
  EXPECT_EQ(SplitBatch(batch, feeds, 100)->size(), 7u);
}

// Three paragraphs of two, none and one sentences: of words 0 to 2, 3, and 4 to 5.
TEST(SplitBatchTest, SharesOfSequencesHaveTheirPartOfTheLod) {
  const FeedSpec x{.name = "x", .dtype = DType::kFloat32, .shape = {-1}};
  Tensor words = VectorOf<float>({0, 1, 2, 3, 4, 5});
  words.lod = {{0, 2, 2, 3}, {0, 3, 4, 6}};
  const auto shares = SplitBatch({words}, {x}, 2);
  ASSERT_THAT(shares, IsOk());
  ASSERT_EQ(shares->size(), 2u);
  const Tensor& first = (*shares)[0].feeds[0];
  EXPECT_THAT(Values<float>(first), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(first.lod, (Lod{{0, 2, 2}, {0, 3, 4}}));
  const Tensor& second = (*shares)[1].feeds[0];
  EXPECT_THAT(Values<float>(second), ElementsAre(4, 5));
  EXPECT_EQ(second.lod, (Lod{{0, 1}, {0, 2}}));
  EXPECT_EQ((*shares)[0].num_samples + (*shares)[1].num_samples, 3);
}

TEST(SplitBatchTest, SaysWhatCannotBeShared) {
  const FeedSpec x{.name = "x", .dtype = DType::kFloat32, .shape = {-1}};
  const FeedSpec y{.name = "y", .dtype = DType::kFloat32, .shape = {-1}};
  const auto split = [&](const std::vector<Tensor>& batch, const std::vector<FeedSpec>& feeds) {
    return SplitBatch(batch, feeds, 2);
  };
  const auto invalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(split({}, {x}), FailsWith(invalid, "got 0 feeds, expected 1"));
  EXPECT_THAT(split({VectorOf<float>({1}), VectorOf<float>({1, 2})}, {x, y}),
              FailsWith(invalid, "feed 'y' has 2 samples, 'x' has 1"));
  EXPECT_THAT(split({VectorOf<float>({})}, {x}), FailsWith(invalid, "has no samples"));
  Tensor sequences = VectorOf<float>({1, 2, 3});
  sequences.lod = {{0, 4, 3}};
  EXPECT_THAT(split({sequences}, {x}), FailsWith(invalid, "feed 'x': LoD level 0 is [0,4,3]"));
  sequences.lod = {{0, 3}};
  EXPECT_THAT(split({sequences, VectorOf<float>({1, 2})}, {x, y}),
              FailsWith(invalid, "feed 'y' has 2 samples, 'x' has 1"));
}

}  // namespace
}  // namespace interp::testing
