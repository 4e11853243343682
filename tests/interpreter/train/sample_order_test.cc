#include "interpreter/train/sample_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
std::vector<int64_t> Sorted(std::vector<int64_t> order) {
  std::ranges::sort(order);
  return order;
}

// 10 samples in 3 parts: 0-2, 3-5, 6-9.
TEST(SampleOrder, PartsAreNeighboursAndDifferByOneSample) {
  const auto part = [](int64_t index) {
    return SampleOrder(10, {.shuffle = false, .num_parts = 3, .part_index = index}, 0);
  };
  EXPECT_THAT(part(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(part(1), ElementsAre(3, 4, 5));
  EXPECT_THAT(part(2), ElementsAre(6, 7, 8, 9));
}

TEST(SampleOrder, EverySampleIsInExactlyOnePart) {
  for (const int64_t count : {0, 1, 2, 7, 100}) {
    for (const int64_t num_parts : {1, 2, 3, 7, 8, 150}) {
      std::vector<int64_t> all;
      for (int64_t i = 0; i < num_parts; ++i) {
        const BatchOptions options{.shuffle_buffer = 5, .num_parts = num_parts, .part_index = i};
        const std::vector<int64_t> part = SampleOrder(count, options, 3);
        EXPECT_EQ(SamplesInPart(count, options), std::ssize(part));
        EXPECT_LE(std::abs(std::ssize(part) * num_parts - count), num_parts);
        all.insert(all.end(), part.begin(), part.end());
      }
      EXPECT_EQ(Sorted(all), UpTo(count)) << count << " in " << num_parts;
    }
  }
}

TEST(SampleOrder, AnEmptyPartHasNoBatches) {
  const BatchOptions options{.num_parts = 4, .part_index = 0};
  EXPECT_EQ(BatchesPerEpoch(3, options), 0);
  EXPECT_THAT(SampleOrder(3, options, 0), IsEmpty());
}

TEST(SampleOrder, EpochsAndSeedsDiffer) {
  for (const BatchOptions& options :
       {BatchOptions{.seed = 1}, BatchOptions{.seed = 1, .shuffle_block = 5},
        BatchOptions{.seed = 1, .shuffle_buffer = 10},
        BatchOptions{.seed = 1, .shuffle_block = 7, .shuffle_buffer = 10}}) {
    const std::vector<int64_t> first = SampleOrder(100, options, 0);
    EXPECT_EQ(Sorted(first), UpTo(100));
    EXPECT_EQ(first, SampleOrder(100, options, 0));
    EXPECT_NE(first, SampleOrder(100, options, 1));
    BatchOptions other = options;
    other.seed = 2;
    EXPECT_NE(first, SampleOrder(100, other, 0));
  }
}

TEST(SampleOrder, BlocksStayWhole) {
  const std::vector<int64_t> order = SampleOrder(23, {.shuffle_block = 5}, 0);
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i] % 5 != 0) {
      EXPECT_EQ(order[i], order[i - 1] + 1);
    }
  }
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST(SampleOrder, ABufferHoldsNoMoreThanItsSize) {
  const std::vector<int64_t> order = SampleOrder(1000, {.shuffle_buffer = 16}, 0);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_LT(order[i], i + 16);
  EXPECT_EQ(SampleOrder(1000, {.shuffle_buffer = 1}, 0), UpTo(1000));
}

}  // namespace
}  // namespace interp
