#include "interpreter/train/thread_team.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/testing/matchers.h"

namespace interp {
namespace {

TEST(ThreadTeam, APartIsAlwaysDoneByTheSameThread) {
  const auto team = ThreadTeam::Create(3);
  ASSERT_THAT(team, testing::IsOk());
  std::vector<std::thread::id> first(3);
  (*team)->Run([&](int part) { first[part] = std::this_thread::get_id(); });
  EXPECT_NE(first[0], first[1]);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread::id> now(3);
    (*team)->Run([&](int part) { now[part] = std::this_thread::get_id(); });
    EXPECT_EQ(now, first);
  }
}

TEST(ThreadTeam, RunReturnsWhenAllPartsAreDone) {
  const auto team = ThreadTeam::Create(4);
  ASSERT_THAT(team, testing::IsOk());
  std::vector<int> counts(4, 0);
  for (int round = 0; round < 1000; ++round) {
    (*team)->Run([&](int part) { ++counts[part]; });
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 4 * (round + 1));
  }
}

}  // namespace
}  // namespace interp
