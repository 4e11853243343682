// EstimateMemory: how much memory the variables of a run take, from declared shapes.
#pragma once

#include <cstdint>

#include "core/program.h"
#include "interpreter/plan/plan.h"

namespace interp {

struct MemoryEstimate {
  // Most bytes that computed variables take at once when the plan runs in its trace order.
  // Feeds, parameters and what kernels take for themselves do not count.
  uint64_t peak_bytes = 0;
  // The sum over all computed variables: what a run without garbage collection and in-place
  // writing would take.
  uint64_t total_bytes = 0;
  // Computed tensors whose declared shape has unknown dims. Those count as 1.
  int64_t num_unknown_shapes = 0;
};

// `program` is the one `plan` was built from. Linear in the plan's size.
MemoryEstimate EstimateMemory(const Plan& plan, const Program& program);

}  // namespace interp
