// ParallelFor: splits a loop over the threads an op may use.
//
// OpenMP, because oneDNN runs on it too: one pool of threads inside ops, never two. How the range
// is cut depends only on `num_threads`, so a loop that reduces per chunk gives the same bits every
// time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace interp {

// Elements below which one thread wins for loops of a few operations per element.
inline constexpr int64_t kElementwiseGrain = 32 * 1024;

// The fewest steps of a loop that a thread of its own pays for. A step costs as much as
// `cost_of_one` elements of a simple loop, or, with another `cost_of_task`, is counted in its unit.
inline int64_t GrainFor(int64_t cost_of_one, int64_t cost_of_task = kElementwiseGrain) {
  const int64_t cost = std::max<int64_t>(cost_of_one, 1);
  return (cost_of_task - 1) / cost + 1;
}
// The same for one of `count` steps that cost `cost_of_all` together.
inline int64_t GrainForShare(int64_t cost_of_all, int64_t count,
                             int64_t cost_of_task = kElementwiseGrain) {
  return GrainFor(cost_of_all / std::max<int64_t>(count, 1), cost_of_task);
}

// What a body that lies behind a pointer is read as: a copy where that costs nothing, since no
// store can change what a copy captured.
template <typename Body>
using CopiedIfTrivial = std::conditional_t<std::is_trivially_copyable_v<Body>, Body, const Body&>;

// Has the OpenMP threads that the calling thread may get next, `num_threads` with itself, flush
// denormal numbers (flush_denormals.h), unless they do so already (core/machine/openmp_team.h).
// Threads that are started later inherit it, since regions are entered under FlushDenormals.
void FlushDenormalsInTeam(int num_threads);

// How many ranges ParallelFor cuts [0, n) into, one for each thread that works. Range c is
// [n * c / ranges, n * (c + 1) / ranges).
inline int64_t CountRanges(int num_threads, int64_t n, int64_t grain) {
  return std::max<int64_t>(1, std::min<int64_t>(num_threads, n / std::max<int64_t>(grain, 1)));
}

// ParallelFor of a body that is called through `call`.
void ParallelForRanges(int num_threads, int64_t n, int64_t grain, const void* body,
                       void (*call)(const void* body, int64_t begin, int64_t end));

// Calls body(begin, end) on disjoint ranges that cover [0, n), each at least `grain` long but for
// the last, on up to `num_threads` threads, which treat denormal numbers as the calling one does;
// on the calling one where that works alone (core/machine/openmp_team.h). body must not throw.
template <typename Body>
void ParallelFor(int num_threads, int64_t n, int64_t grain, const Body& body) {
  // The body is compiled once, not for one thread and for several.
  ParallelForRanges(num_threads, n, grain, &body,
                    [](const void* shared, int64_t begin, int64_t end) {
                      const CopiedIfTrivial<Body> own = *static_cast<const Body*>(shared);
                      own(begin, end);
                    });
}

// Calls body(image, first, last) on ranges of rows within one of `images` images each, which cover
// their `rows` rows, on up to `num_threads` threads. body must not throw.
template <typename Body>
void ParallelForImageRows(int num_threads, int64_t images, int64_t rows, const Body& body) {
  ParallelFor(num_threads, images * rows, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const int64_t image = at / rows;
      const int64_t first = at - image * rows;
      const int64_t last = rows < first + end - at ? rows : first + end - at;
      body(image, first, last);
      at += last - first;
    }
  });
}

}  // namespace interp
