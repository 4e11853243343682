#include "interpreter/verify/reachability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace interp::testing {
namespace {

using verify::Answer;
using verify::Reachability;
using Edges = std::vector<Reachability::Edge>;

std::vector<std::vector<bool>> Closure(int n, const Edges& edges) {
  std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
  std::vector<std::vector<int>> next(n);
  for (const auto& [from, to] : edges) next[from].push_back(to);
  for (int from = n; from-- > 0;) {
    reaches[from][from] = true;
    for (const int via : next[from]) {
      for (int to = via; to < n; ++to) reaches[from][to] = reaches[from][to] || reaches[via][to];
    }
  }
  return reaches;
}

Edges RandomEdges(std::mt19937& random, int n, int max_predecessors, int reach) {
  Edges edges;
  for (int to = 1; to < n; ++to) {
    for (int left = static_cast<int>(random() % (max_predecessors + 1)); left > 0; --left) {
      edges.emplace_back(to - 1 - static_cast<int>(random() % std::min(to, reach)), to);
    }
  }
  return edges;
}

TEST(ReachabilityTest, IsExactOnRandomGraphs) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(random() % 60);
    const Edges edges = RandomEdges(random, n, 1 + round % 4, 1 + round % 40);
    const auto closure = Closure(n, edges);
    Reachability graph(n, edges);
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        ASSERT_EQ(graph.Reaches(a, b), closure[a][b] ? Answer::kYes : Answer::kNo)
            << "round " << round << ": " << a << " to " << b;
      }
    }
  }
}

TEST(ReachabilityTest, FindsPathsAroundAnEdge) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const int n = 2 + static_cast<int>(random() % 30);
    const Edges edges = RandomEdges(random, n, 3, 30);
    Reachability graph(n, edges);
    for (const auto& edge : edges) {
      Edges others;
      for (const auto& other : edges) {
        if (other != edge) others.push_back(other);
      }
      const bool around = Closure(n, others)[edge.first][edge.second];
      ASSERT_EQ(graph.ReachesAround(edge.first, edge.second), around ? Answer::kYes : Answer::kNo);
    }
  }
}

TEST(ReachabilityTest, EmptyAndSingle) {
  Reachability none(0, {});
  Reachability one(1, {});
  EXPECT_EQ(one.Reaches(0, 0), Answer::kYes);
}

// Asks `questions` random questions and returns how many were left open.
int Unknown(Reachability& graph, int n, int questions) {
  std::mt19937 random(3);
  int unknown = 0;
  for (int i = 0; i < questions; ++i) {
    const int a = static_cast<int>(random() % n);
    const int b = static_cast<int>(random() % n);
    unknown += graph.Reaches(std::min(a, b), std::max(a, b)) == Answer::kUnknown ? 1 : 0;
  }
  return unknown;
}

// A search that is not linear would take longer than anybody waits.
TEST(ReachabilityTest, LargeGraphs) {
  const int n = 100'000;
  std::mt19937 random(4);
  for (const int reach : {1, 8, 1000, n}) {
    for (const int predecessors : {1, 2, 4}) {
      Reachability graph(n, RandomEdges(random, n, predecessors, reach));
      Unknown(graph, n, n);
    }
  }
  Edges pairs;  // 0 -> 1 -> n-1, 2 -> 3 -> n-1, ...: a join with a path from every node
  for (int i = 0; i + 2 < n; i += 2) {
    pairs.emplace_back(i, i + 1);
    pairs.emplace_back(i + 1, n - 1);
  }
  Reachability graph(n, pairs);
  for (int i = 0; i + 2 < n; ++i) ASSERT_EQ(graph.Reaches(i, n - 1), Answer::kYes);
  EXPECT_EQ(Unknown(graph, n, n), 0);
}

}  // namespace
}  // namespace interp::testing
