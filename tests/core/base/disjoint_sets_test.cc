#include "core/base/disjoint_sets.h"

#include "gtest/gtest.h"

namespace interp::testing::disjoint_sets_test {
namespace {

TEST(DisjointSetsTest, EachNumberIsASetAtFirst) {
  DisjointSets sets(3);
  EXPECT_EQ(sets.count(), 3);
  for (int32_t id = 0; id < 3; ++id) EXPECT_EQ(sets.Root(id), id);
}

TEST(DisjointSetsTest, TheFirstRootStandsForBoth) {
  DisjointSets sets(6);
  sets.Join(4, 3);
  sets.Join(1, 2);
  sets.Join(3, 2);
  for (const int32_t id : {1, 2, 3, 4}) EXPECT_EQ(sets.Root(id), 4);
  EXPECT_EQ(sets.Root(0), 0);
  EXPECT_EQ(sets.Root(5), 5);
}

TEST(DisjointSetsTest, JoiningTwiceChangesNothing) {
  DisjointSets sets(3);
  sets.Join(0, 1);
  sets.Join(1, 0);
  sets.Join(2, 2);
  EXPECT_EQ(sets.Root(1), 0);
  EXPECT_EQ(sets.Root(2), 2);
}

}  // namespace
}  // namespace interp::testing::disjoint_sets_test
