// DisjointSets: which of the numbers 0 to n-1 belong together, found out pair by pair (union-find).
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace interp {

// At first each number is a set of its own. A call takes O(log n), amortized.
class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }

  size_t count() const { return parents_.size(); }

  // The number that stands for the set of `id`. Shortens the way to it, so it is not const.
  int32_t Root(int32_t id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }

  // Makes one set of two. The root of `a` stands for both.
  void Join(int32_t a, int32_t b) { parents_[Root(b)] = Root(a); }

 private:
  std::vector<int32_t> parents_;
};

}  // namespace interp
