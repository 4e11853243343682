#include "interpreter/analysis/shrink.h"

#include <algorithm>

namespace interp {
namespace {

// Steps of the backward search per predecessor. Real networks need about ten (a skip connection
// around a block); more only matters for very wide joins.
constexpr int kStepsPerPredecessor = 64;

class Shrinker {
 public:
  Shrinker(size_t num_instructions, std::vector<Edge>& edges)
      : edges_(edges), begins_(num_instructions + 1, 0), seen_(num_instructions, -1) {
    for (const Edge& edge : edges) ++begins_[edge.to + 1];
    for (size_t i = 0; i < num_instructions; ++i) begins_[i + 1] += begins_[i];
  }

  void Run() {
    for (size_t to = 0; to + 1 < begins_.size(); ++to) {
      if (begins_[to + 1] - begins_[to] > 1) Shrink(static_cast<InstrId>(to));
    }
  }

 private:
  // Predecessors are sorted, so a path from p to `to` can only pass through later predecessors:
  // from the last to the first, mark what lies before each one that is kept.
  void Shrink(InstrId to) {
    const InstrId earliest = edges_[begins_[to]].from;
    int budget = kStepsPerPredecessor * (begins_[to + 1] - begins_[to]);
    for (int e = begins_[to + 1] - 1; e >= begins_[to]; --e) {
      Edge& edge = edges_[e];
      if (seen_[edge.from] == to) {
        edge.shrunk = true;
      } else if (e > begins_[to]) {
        MarkAncestors(edge.from, to, earliest, budget);
      }
    }
  }

  // Marks the ancestors of `from` down to `earliest` as seen from `to`.
  void MarkAncestors(InstrId from, InstrId to, InstrId earliest, int& budget) {
    stack_.assign(1, from);
    while (!stack_.empty() && budget > 0) {
      const InstrId at = stack_.back();
      stack_.pop_back();
      for (int e = begins_[at + 1] - 1; e >= begins_[at] && edges_[e].from >= earliest; --e) {
        --budget;
        if (edges_[e].shrunk || seen_[edges_[e].from] == to) continue;
        seen_[edges_[e].from] = to;
        stack_.push_back(edges_[e].from);
      }
    }
  }

  std::vector<Edge>& edges_;
  std::vector<int32_t> begins_;  // first edge into each instruction
  std::vector<InstrId> seen_;    // by instruction: the last `to` that marked it
  std::vector<InstrId> stack_;
};

}  // namespace

void ShrinkDependencies(size_t num_instructions, std::vector<Edge>& edges) {
  Shrinker(num_instructions, edges).Run();
}

}  // namespace interp
