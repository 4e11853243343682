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

// Ascending with NaN last, or descending with NaN first. Which of equal elements comes first is
// left to the algorithm of the standard library: Paddle's kernels call the same ones.
template <typename T, bool kDescending>
struct RankedBefore {
  bool operator()(const Ranked<T>& a, const Ranked<T>& b) const {
    const bool a_nan = a.value != a.value;
    const bool b_nan = b.value != b.value;
    if (a_nan != b_nan) return kDescending ? a_nan : b_nan;
    return kDescending ? a.value > b.value : a.value < b.value;
  }
};

// Moves the first `k` elements to the front; `sorted`: in their order. Else only the last of them
// is sure to be in its place.
template <bool kDescending, typename T>
void SelectFirst(Ranked<T>* first, Ranked<T>* last, int64_t k, bool sorted) {
  constexpr int64_t kFewOfMany = 64;
  const RankedBefore<T, kDescending> before;
  if (k * kFewOfMany < last - first) {
    std::partial_sort(first, first + k, last, before);
    return;
  }
  std::nth_element(first, first + k - 1, last, before);
  if (sorted) std::sort(first, first + k - 1, before);
}

// Calls choose(first, last) for the elements of every line of `x`, in their order, and writes the
// first `keep` of what it leaves, and where they were, as the lines of `values` and `indices`.
// REQUIRES: keep <= lines.length.
template <typename T, typename Choose>
absl::Status SortLines(KernelContext& ctx, const T* x, const Lines& lines, int64_t keep, T* values,
                       int64_t* indices, const Choose& choose) {
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
    choose(entry, entry + lines.length);
    const int64_t to = kept.Start(line);
    for (int64_t i = 0; i < keep; ++i) {
      values[to + i * lines.inner] = entry[i].value;
      indices[to + i * lines.inner] = entry[i].index;
    }
  });
  return absl::OkStatus();
}

}  // namespace interp
