// Reachability answers "does a path lead from a to b?" over a graph without cycles: exactly, and on
// the graphs that plans are in about constant time.
//
// Algorithm. Nodes are numbered so that edges lead from lower to higher numbers. A few depth-first
// walks, each with its own order of successors, number the nodes in postorder. Of each walk a node
// keeps an interval that holds the numbers of all it reaches (GRAIL: Yildirim, Chaoji, Zaki,
// "Scalable reachability index for large graphs", PVLDB 3, 2010) and one that holds exactly those
// of its subtree: most questions are answered by the first ("no") or the second ("yes"). For the
// rest two searches, from a along the edges and from b against them, take turns so that the cheaper
// side goes on; both leave out nodes the intervals rule out. A hub with very many edges is thus
// walked over only when both sides have come to one.
//
// Time and memory to build are linear. Questions spend from a budget that is linear, too, so that a
// hostile graph cannot take quadratic time; once it is spent, questions that need a search are
// answered kUnknown.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace interp::verify {

enum class Answer : int8_t { kNo, kYes, kUnknown };

class Reachability {
 public:
  using NodeId = int32_t;
  using Edge = std::pair<NodeId, NodeId>;

  // REQUIRES: every edge leads from a lower to a higher number below `num_nodes`. Equal edges count
  // once.
  Reachability(int32_t num_nodes, const std::vector<Edge>& edges);

  // Whether a path leads from `from` to `to`; a node reaches itself.
  Answer Reaches(NodeId from, NodeId to);
  // Whether one does that is not the edge from -> to itself. Has a smaller budget of its own.
  Answer ReachesAround(NodeId from, NodeId to);

 private:
  static constexpr int kWalks = 3;
  // Postorder numbers of one walk: everything reached lies in [lowest, last], the subtree of the
  // walk is exactly [first, last], and `last` is the node's own.
  struct Interval {
    int32_t lowest = 0;
    int32_t first = 0;
    int32_t last = -1;
  };

  // Edges of all nodes in one array.
  struct Lists {
    std::vector<int32_t> begins;
    std::vector<NodeId> targets;
    absl::Span<const NodeId> operator[](NodeId node) const {
      return absl::MakeConstSpan(targets).subspan(begins[node], begins[node + 1] - begins[node]);
    }
  };
  struct Side;

  static Lists MakeLists(int32_t num_nodes, const std::vector<Edge>& edges, bool reversed);
  void Walk(int walk);
  NodeId NextSuccessor(int walk, NodeId node, int32_t position) const;
  void Finish(int walk, NodeId node, int32_t number);
  const Interval& IntervalOf(NodeId node, int walk) const {
    return intervals_[static_cast<size_t>(node) * kWalks + walk];
  }
  // kUnknown: only a search can tell.
  Answer ByIntervals(NodeId from, NodeId to) const;
  Answer Search(NodeId from, NodeId to, int64_t& budget);

  Lists successors_;
  Lists predecessors_;
  std::vector<Interval> intervals_;  // kWalks for each node
  // Of the searches: who has seen a node last, counted by question.
  std::vector<int32_t> seen_forward_;
  std::vector<int32_t> seen_backward_;
  std::vector<NodeId> forward_;
  std::vector<NodeId> backward_;
  int32_t question_ = 0;
  // Edges that searches may still look at: of questions whether and whether around an edge.
  int64_t budget_;
  int64_t around_budget_;
};

}  // namespace interp::verify
