#include "interpreter/verify/reachability.h"

#include <algorithm>

namespace interp::verify {
namespace {

// Edges that searches look at: per node and edge of the graph, and whatever its size.
constexpr int64_t kBudgetPerElement = 256;
constexpr int64_t kAroundBudgetPerElement = 16;
constexpr int64_t kLeastBudget = 1 << 22;

int64_t Budget(int64_t per_element, int32_t num_nodes, size_t num_edges) {
  return kLeastBudget + per_element * (num_nodes + static_cast<int64_t>(num_edges));
}

}  // namespace

Reachability::Reachability(int32_t num_nodes, const std::vector<Edge>& edges)
    : successors_(MakeLists(num_nodes, edges, /*reversed=*/false)),
      predecessors_(MakeLists(num_nodes, edges, /*reversed=*/true)),
      intervals_(static_cast<size_t>(num_nodes) * kWalks),
      seen_forward_(num_nodes, 0),
      seen_backward_(num_nodes, 0),
      budget_(Budget(kBudgetPerElement, num_nodes, edges.size())),
      around_budget_(Budget(kAroundBudgetPerElement, num_nodes, edges.size())) {
  for (int walk = 0; walk < kWalks; ++walk) Walk(walk);
}

// Sorted by target within each node, without duplicates.
Reachability::Lists Reachability::MakeLists(int32_t num_nodes, const std::vector<Edge>& edges,
                                            bool reversed) {
  Lists lists;
  lists.begins.assign(num_nodes + 1, 0);
  for (const Edge& edge : edges) ++lists.begins[(reversed ? edge.second : edge.first) + 1];
  for (int32_t i = 0; i < num_nodes; ++i) lists.begins[i + 1] += lists.begins[i];
  lists.targets.resize(edges.size());
  std::vector<int32_t> next(lists.begins.begin(), lists.begins.end() - 1);
  for (const Edge& edge : edges) {
    const NodeId at = reversed ? edge.second : edge.first;
    lists.targets[next[at]++] = reversed ? edge.first : edge.second;
  }
  auto end = lists.targets.begin();
  for (int32_t i = 0; i < num_nodes; ++i) {
    const auto first = lists.targets.begin() + lists.begins[i];
    const auto last = lists.targets.begin() + lists.begins[i + 1];
    std::sort(first, last);
    lists.begins[i] = static_cast<int32_t>(end - lists.targets.begin());
    end = std::unique_copy(first, last, end);
  }
  lists.begins[num_nodes] = static_cast<int32_t>(end - lists.targets.begin());
  lists.targets.resize(lists.begins[num_nodes]);
  return lists;
}

// The successor a walk visits at `position`: first to last, last to first, from the middle on.
Reachability::NodeId Reachability::NextSuccessor(int walk, NodeId node, int32_t position) const {
  const absl::Span<const NodeId> all = successors_[node];
  const auto size = static_cast<int32_t>(all.size());
  switch (walk) {
    case 0:
      return all[position];
    case 1:
      return all[size - 1 - position];
    default:
      return all[(position + node % size) % size];
  }
}

void Reachability::Walk(int walk) {
  const auto num_nodes = static_cast<int32_t>(seen_forward_.size());
  struct Visit {
    NodeId node;
    int32_t position;  // of the successor to look at next
  };
  std::vector<Visit> stack;
  int32_t number = 0;
  const auto enter = [&](NodeId node) {
    Interval& interval = intervals_[static_cast<size_t>(node) * kWalks + walk];
    interval.first = number;
    interval.last = num_nodes;  // visited, not finished
    stack.push_back({node, 0});
  };
  for (int32_t i = 0; i < num_nodes; ++i) {
    const NodeId root = walk == 1 ? num_nodes - 1 - i : i;
    if (!predecessors_[root].empty()) continue;
    enter(root);
    while (!stack.empty()) {
      Visit& visit = stack.back();
      if (visit.position == static_cast<int32_t>(successors_[visit.node].size())) {
        Finish(walk, visit.node, number++);
        stack.pop_back();
        continue;
      }
      const NodeId next = NextSuccessor(walk, visit.node, visit.position++);
      if (IntervalOf(next, walk).last < 0) enter(next);
    }
  }
}

void Reachability::Finish(int walk, NodeId node, int32_t number) {
  int32_t lowest = number;
  for (const NodeId next : successors_[node]) {
    lowest = std::min(lowest, IntervalOf(next, walk).lowest);
  }
  Interval& interval = intervals_[static_cast<size_t>(node) * kWalks + walk];
  interval.lowest = lowest;
  interval.last = number;
}

Answer Reachability::ByIntervals(NodeId from, NodeId to) const {
  if (from >= to) return from == to ? Answer::kYes : Answer::kNo;
  for (int walk = 0; walk < kWalks; ++walk) {
    const Interval& a = IntervalOf(from, walk);
    const Interval& b = IntervalOf(to, walk);
    if (b.last > a.last || b.lowest < a.lowest) return Answer::kNo;
    if (b.last >= a.first) return Answer::kYes;
  }
  return Answer::kUnknown;
}

Answer Reachability::Reaches(NodeId from, NodeId to) {
  const Answer known = ByIntervals(from, to);
  return known != Answer::kUnknown ? known : Search(from, to, budget_);
}

// One of the two searches: the nodes still to expand and what its steps have cost so far.
struct Reachability::Side {
  std::vector<NodeId>& open;
  const Lists& lists;
  std::vector<int32_t>& seen;
  int64_t cost = 0;

  int64_t NextCost() const { return cost + static_cast<int64_t>(lists[open.back()].size()); }
};

Answer Reachability::Search(NodeId from, NodeId to, int64_t& budget) {
  ++question_;
  forward_.assign(1, from);
  backward_.assign(1, to);
  seen_forward_[from] = question_;
  seen_backward_[to] = question_;
  Side ahead{forward_, successors_, seen_forward_};
  Side behind{backward_, predecessors_, seen_backward_};
  while (!forward_.empty() && !backward_.empty()) {
    const bool go_ahead = ahead.NextCost() <= behind.NextCost();
    Side& side = go_ahead ? ahead : behind;
    const Side& other = go_ahead ? behind : ahead;
    const NodeId at = side.open.back();
    side.open.pop_back();
    for (const NodeId next : side.lists[at]) {
      ++side.cost;
      if (--budget < 0) return Answer::kUnknown;
      if (side.seen[next] == question_) continue;
      if (other.seen[next] == question_) return Answer::kYes;
      const Answer known = go_ahead ? ByIntervals(next, to) : ByIntervals(from, next);
      if (known == Answer::kYes) return known;
      if (known == Answer::kNo) continue;
      side.seen[next] = question_;
      side.open.push_back(next);
    }
  }
  return Answer::kNo;
}

// A path around the edge leaves `from` by another edge, and enters `to` by another edge.
Answer Reachability::ReachesAround(NodeId from, NodeId to) {
  const absl::Span<const NodeId> after = successors_[from];
  const absl::Span<const NodeId> before = predecessors_[to];
  const bool go_ahead = after.size() <= before.size();
  Answer answer = Answer::kNo;
  for (const NodeId via : go_ahead ? after : before) {
    if (via == (go_ahead ? to : from)) continue;
    if (--around_budget_ < 0) return Answer::kUnknown;
    const NodeId first = go_ahead ? via : from;
    const NodeId last = go_ahead ? to : via;
    Answer found = ByIntervals(first, last);
    if (found == Answer::kUnknown) found = Search(first, last, around_budget_);
    if (found == Answer::kYes) return found;
    if (found == Answer::kUnknown) answer = found;
  }
  return answer;
}

}  // namespace interp::verify
