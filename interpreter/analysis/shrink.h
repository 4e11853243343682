// ShrinkDependencies: the same order with fewer edges.
#pragma once

#include <vector>

#include "interpreter/plan/plan.h"

namespace interp {

// Marks edges p -> q as shrunk when a path of other edges leads from p to q. The edges stay in the
// list: stream analysis and verification want all of them, only the run's counts and successor
// lists leave the shrunk ones out.
//
// For each q the search walks backwards from its other predecessors, not past the earliest one, and
// gives up after a fixed number of steps per predecessor: an edge it cannot prove redundant stays,
// which is always correct. So time is linear in edges, where a full transitive reduction is not.
// REQUIRES: edges sorted by `to`, then `from`, with `from` < `to`.
void ShrinkDependencies(size_t num_instructions, std::vector<Edge>& edges);

}  // namespace interp
