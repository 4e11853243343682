#include "tools/top_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/testing/command.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Indices(const TopRow& row) {
  std::vector<int64_t> indices;
  for (const TopValue& value : row.values) indices.push_back(value.index);
  return indices;
}

TEST(TopValuesTest, EachRowHasItsLargest) {
  const Tensor tensor = Tensor::Of<float>({2, 1, 3}, {1, 3, 2, -1, -3, -2});
  const std::vector<TopRow> rows = FindTop({"y", tensor}, 2, {"a", "b"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].row, "[1,0]");
  EXPECT_THAT(Indices(rows[0]), ElementsAre(1, 2));
  EXPECT_THAT(Indices(rows[1]), ElementsAre(0, 2));
  EXPECT_EQ(rows[0].values[0].label, "b");
  EXPECT_EQ(rows[0].values[1].label, "");
}

TEST(TopValuesTest, EqualValuesKeepTheirOrderAndNanIsLast) {
  const Tensor tensor = Tensor::Of<float>({4}, {NAN, 1, 1, -INFINITY});
  const std::vector<TopRow> rows = FindTop({"y", tensor}, 9, {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(Indices(rows[0]), ElementsAre(1, 2, 0, 3));
}

TEST(TopValuesTest, WhatHasNoRowsHasNone) {
  EXPECT_TRUE(FindTop({"y", Tensor::Of<float>({}, {1})}, 1, {}).empty());
  EXPECT_TRUE(FindTop({"y", Tensor::Of<float>({0, 3}, {})}, 1, {}).empty());
  EXPECT_TRUE(FindTop({"y", Tensor()}, 1, {}).empty());
  EXPECT_EQ(FindTop({"y", Tensor::Of<float>({100, 1}, std::vector<float>(100))}, 1, {}).size(),
            static_cast<size_t>(kMaxTopRows));
}

TEST(TopValuesTest, TheCommandNamesThem) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "labels.txt") << "zero\none\ntwo\r\nthree\n";
  const std::string digits = std::string(INTERP_SOURCE_DIR) + "/tools/digits";
  const testing::CommandResult result =
      testing::RunInterp({"run", digits, "--feed", digits + "/image.npy", "--top", "2", "--labels",
                          folder / "labels.txt"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("      3  three\n"));
}

}  // namespace
}  // namespace interp
