// ParallelFor: splits a loop over the threads an op may use.
//
// OpenMP, because oneDNN runs on it too: one pool of threads inside ops, never two. How the range
// is cut depends only on `num_threads`, so a loop that reduces per chunk gives the same bits every
// time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace interp {

// Elements below which one thread wins for loops of a few operations per element.
inline constexpr int64_t kElementwiseGrain = 32 * 1024;

// Calls body(begin, end) on disjoint ranges that cover [0, n), each at least `grain` long but for
// the last, on up to `num_threads` threads. body must not throw.
template <typename Body>
void ParallelFor(int num_threads, int64_t n, int64_t grain, const Body& body) {
  const int64_t chunks = std::min<int64_t>(num_threads, n / std::max<int64_t>(grain, 1));
  if (chunks <= 1) {
    if (n > 0) body(int64_t{0}, n);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(chunks)) schedule(static, 1)
  for (int64_t c = 0; c < chunks; ++c) body(n * c / chunks, n * (c + 1) / chunks);
}

}  // namespace interp
