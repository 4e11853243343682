#include "interpreter/analysis/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/testing/plans.h"
#include "tests/testing/sample.h"

namespace interp::testing::shrink_test {
namespace {

std::vector<Edge> Edges(const std::vector<std::pair<int, int>>& pairs) {
  std::vector<Edge> edges;
  for (const auto& [from, to] : pairs) edges.push_back({.from = from, .to = to});
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::make_pair(a.to, a.from) < std::make_pair(b.to, b.from);
  });
  return edges;
}

std::vector<std::pair<int, int>> Shrunk(const std::vector<Edge>& edges) {
  std::vector<std::pair<int, int>> pairs;
  for (const Edge& edge : edges) {
    if (edge.shrunk) pairs.emplace_back(edge.from, edge.to);
  }
  return pairs;
}

std::vector<Edge> RandomEdges(std::mt19937& random, int n, int max_predecessors, int reach) {
  std::vector<std::pair<int, int>> pairs;
  for (int to = 1; to < n; ++to) {
    const int count = static_cast<int>(random() % (max_predecessors + 1));
    for (int i = 0; i < count; ++i) {
      pairs.emplace_back(to - 1 - static_cast<int>(random() % std::min(to, reach)), to);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return Edges(pairs);
}

//  0 -> 1 -> 2 and 0 -> 2
TEST(ShrinkTest, DropsWhatAPathImplies) {
  std::vector<Edge> edges = Edges({{0, 1}, {1, 2}, {0, 2}, {2, 3}, {0, 3}});
  ShrinkDependencies(4, edges);
  EXPECT_THAT(Shrunk(edges), ::testing::ElementsAre(std::pair(0, 2), std::pair(0, 3)));
}

TEST(ShrinkTest, KeepsDiamonds) {
  std::vector<Edge> edges = Edges({{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  ShrinkDependencies(4, edges);
  EXPECT_THAT(Shrunk(edges), ::testing::IsEmpty());
}

TEST(ShrinkTest, NothingToDo) {
  std::vector<Edge> none;
  ShrinkDependencies(0, none);
  ShrinkDependencies(3, none);
  EXPECT_TRUE(none.empty());
}

// The order stays as it was, and an edge is only dropped when others imply it.
TEST(ShrinkTest, KeepsTheOrderOfRandomGraphs) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int n = 2 + static_cast<int>(random() % 120);
    std::vector<Edge> edges = RandomEdges(random, n, 1 + round % 6, 1 + round % 50);
    ShrinkDependencies(n, edges);
    const auto all = Closure(n, edges, [](const Edge&) { return true; });
    const auto kept = Closure(n, edges, [](const Edge& edge) { return !edge.shrunk; });
    ASSERT_EQ(all, kept) << "round " << round;
  }
}

// Within its budget the search finds all there is: what is left is the transitive reduction.
TEST(ShrinkTest, LeavesNoRedundantEdgeInSmallGraphs) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const int n = 2 + static_cast<int>(random() % 25);
    std::vector<Edge> edges = RandomEdges(random, n, 3, 25);
    ShrinkDependencies(n, edges);
    const auto closure = Closure(n, edges, [](const Edge&) { return true; });
    for (const Edge& edge : edges) {
      bool implied = false;
      for (int via = edge.from + 1; via < edge.to; ++via) {
        implied = implied || (closure[edge.from][via] && closure[via][edge.to]);
      }
      ASSERT_EQ(edge.shrunk, implied) << "round " << round;
    }
  }
}

size_t NumShrunk(size_t n, std::vector<Edge> edges) {
  ShrinkDependencies(n, edges);
  return std::count_if(edges.begin(), edges.end(), [](const Edge& e) { return e.shrunk; });
}

// A full transitive reduction of these would not end within the time of a test.
TEST(ShrinkTest, AMillionInstructions) {
  const int n = SampleOf(100'000, 1'000'000);
  std::vector<std::pair<int, int>> chain;
  for (int i = 1; i < n; ++i) chain.emplace_back(i - 1, i);
  EXPECT_EQ(NumShrunk(n, Edges(chain)), 0);

  std::vector<std::pair<int, int>> skips = chain;
  for (int i = 2; i < n; ++i) skips.emplace_back(i / 2, i);  // never within reach of the budget
  EXPECT_LT(NumShrunk(n, Edges(skips)), skips.size());

  std::mt19937 random(3);
  EXPECT_LT(NumShrunk(n, RandomEdges(random, n, 4, n)), 4 * static_cast<size_t>(n));

  std::vector<std::pair<int, int>> star;  // one join of everything
  for (int i = 0; i + 1 < n; ++i) star.emplace_back(i, n - 1);
  EXPECT_EQ(NumShrunk(n, Edges(star)), 0);
}

}  // namespace
}  // namespace interp::testing::shrink_test
