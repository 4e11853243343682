#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/tensor.h"

namespace interp {
namespace {

using ::testing::HasSubstr;

TEST(CheckLodTest, TakesOffsetsThatCoverTheRows) {
  EXPECT_TRUE(CheckLod({}, {}).ok());
  EXPECT_TRUE(CheckLod({{0, 2, 5}}, {5, 3}).ok());
  EXPECT_TRUE(CheckLod({{0, 1, 2}, {0, 2, 5}}, {5, 3}).ok());
  EXPECT_TRUE(CheckLod({{0, 0, 0}}, {0}).ok());
}

TEST(CheckLodTest, RefusesOffsetsThatLeadOutside) {
  EXPECT_THAT(std::string(CheckLod({{0, 2, 6}}, {5, 3}).message()),
              HasSubstr("ends with 6, expected 5, the first dim"));
  EXPECT_FALSE(CheckLod({{0, 3, 2, 5}}, {5}).ok());
  EXPECT_FALSE(CheckLod({{1, 5}}, {5}).ok());
  EXPECT_FALSE(CheckLod({{-1, 0, 5}}, {5}).ok());
  EXPECT_FALSE(CheckLod({{}}, {5}).ok());
  EXPECT_FALSE(CheckLod({{0, 3}, {0, 2, 5}}, {5}).ok());
  EXPECT_FALSE(CheckLod({{0, 1}}, {}).ok());
}

}  // namespace
}  // namespace interp
