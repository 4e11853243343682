#include "kernels/util/parallel_for.h"

#include <algorithm>

namespace interp {

void ParallelForRanges(int num_threads, int64_t n, int64_t grain, const void* body,
                       void (*call)(const void* body, int64_t begin, int64_t end)) {
  const int64_t chunks = std::min<int64_t>(num_threads, n / std::max<int64_t>(grain, 1));
  if (chunks <= 1) {
    if (n > 0) call(body, 0, n);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(chunks)) schedule(static, 1)
  for (int64_t c = 0; c < chunks; ++c) call(body, n * c / chunks, n * (c + 1) / chunks);
}

}  // namespace interp
