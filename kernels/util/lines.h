// Lines: the elements of a plain tensor along one axis, for ops that work on each line by itself
// (sorting, running sums, positions of extremes).
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// A plain tensor as [outer, length, inner]: outer * inner lines, whose elements are `inner` apart.
struct Lines {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;

  int64_t count() const { return outer * inner; }
  // Where line `index` starts.
  int64_t Start(int64_t index) const { return index / inner * length * inner + index % inner; }
};

// Lines of `shape` along `axis`, which may count from the end; a scalar has one line of one
// element. REQUIRES: the shape has that axis (CheckAxis of shape_args.h).
inline Lines LinesAlong(const Shape& shape, int64_t axis) {
  if (shape.rank() == 0) return {};
  const int dim = *NormalizeAxis(axis, shape.rank());
  return {shape.numel(0, dim), shape[dim], shape.numel(dim + 1, shape.rank())};
}

// Tasks that `lines` are cut into for ops that need scratch memory per task.
inline int LineTasks(const Lines& lines, int num_threads) {
  const int64_t tasks = lines.count() / GrainFor(lines.length);
  return static_cast<int>(std::clamp<int64_t>(tasks, 1, num_threads));
}

// Calls body(task, line) for every line; the lines of one task run one after the other.
template <typename Body>
void ForEachLine(const Lines& lines, int tasks, const Body& body) {
  if (lines.length == 0) return;  // of lines without elements there may be 2^60
  ParallelFor(tasks, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t last = lines.count() * (task + 1) / tasks;
      for (int64_t line = lines.count() * task / tasks; line < last; ++line) body(task, line);
    }
  });
}

}  // namespace interp
