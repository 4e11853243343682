// Shapes and memory of a program for given shapes of its feeds, found by running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/load_model.h"
#include "interpreter/plan/plan.h"
#include "tools/feeds.h"

namespace interp {

struct ShapedVar {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  bool parameter = false;
};

// One instruction of the plan.
struct MemoryPoint {
  std::string op;  // as errors name it
  uint64_t alive_bytes =
      0;  // what variables take at once, see interpreter/inspect/liveness_bound.h
};

struct ShapedRun {
  std::vector<ShapedVar> vars;      // of block 0 as the program stands, those that have a value
  std::vector<MemoryPoint> memory;  // in the order of the plan, after the passes
  uint64_t peak_bytes = 0;          // measured, workspace of kernels included
  size_t peak_at = 0;               // index into `memory` of the most that is alive
  bool zero_parameters = false;     // some were not there: sizes that depend on values may differ
};

// What `flags` feed, and random feeds of the declared shapes for the program's others, a first
// unknown dim being 1. Errors: those of ReadFeeds and AddRandomFeeds.
absl::StatusOr<std::vector<NamedTensor>> FeedsOfShapes(const Program& program,
                                                       const FeedFlags& flags);

// Runs the program on FeedsOfShapes. Takes what it loaded out of `model`. Errors: those of
// FeedsOfShapes and of a run.
absl::StatusOr<ShapedRun> RunWithShapes(Model& model, const FeedFlags& flags);

}  // namespace interp
