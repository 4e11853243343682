// The order of argsort and top_k, and the memory they sort in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op_def.h"
#include "kernels/util/lines.h"

namespace interp {

// An element of a line and where it was.
template <typename T>
struct Ranked {
  T value;
  int64_t index;
};

// Ascending with NaN last, or descending with NaN first; equal elements keep their order.
template <typename T, bool kDescending>
struct RankedBefore {
  bool operator()(const Ranked<T>& a, const Ranked<T>& b) const {
    const bool a_nan = a.value != a.value;
    const bool b_nan = b.value != b.value;
    if (a_nan != b_nan) return kDescending ? a_nan : b_nan;
    if (a.value != b.value && !a_nan) return kDescending ? a.value > b.value : a.value < b.value;
    return a.index < b.index;
  }
};

// Writes the first `keep` elements of every line of `x` in RankedBefore's order, and where they
// were, as the lines of `values` and `indices`. REQUIRES: keep <= lines.length.
template <typename T, bool kDescending>
absl::Status SortLines(KernelContext& ctx, const T* x, const Lines& lines, int64_t keep, T* values,
                       int64_t* indices) {
  const int tasks = LineTasks(lines, ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(
      const Workspace scratch,
      ctx.workspace(static_cast<size_t>(tasks * lines.length) * sizeof(Ranked<T>)));
  auto* entries = scratch.data<Ranked<T>>();
  const Lines kept = {lines.outer, keep, lines.inner};
  ForEachLine(lines, tasks, [=](int64_t task, int64_t line) {
    Ranked<T>* entry = entries + task * lines.length;
    const T* from = x + lines.Start(line);
    for (int64_t i = 0; i < lines.length; ++i) entry[i] = {from[i * lines.inner], i};
    if (keep == lines.length) {
      std::sort(entry, entry + keep, RankedBefore<T, kDescending>());
    } else {
      std::partial_sort(entry, entry + keep, entry + lines.length, RankedBefore<T, kDescending>());
    }
    const int64_t to = kept.Start(line);
    for (int64_t i = 0; i < keep; ++i) {
      values[to + i * lines.inner] = entry[i].value;
      indices[to + i * lines.inner] = entry[i].index;
    }
  });
  return absl::OkStatus();
}

}  // namespace interp
