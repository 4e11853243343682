// SumRows: the sum of the rows of a matrix, which is the gradient of a bias.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/util/parallel_for.h"

namespace interp {

// out[j] = sum of x[i, j] over all rows, in their order. Threads share the columns.
template <typename T>
void SumRows(int threads, const T* x, int64_t rows, int64_t columns, T* out) {
  ParallelFor(threads, columns, GrainFor(rows), [=](int64_t begin, int64_t end) {
    std::fill(out + begin, out + end, T{0});
    for (int64_t i = 0; i < rows; ++i) {
      const T* const row = x + i * columns;
      for (int64_t j = begin; j < end; ++j) out[j] += row[j];
    }
  });
}

}  // namespace interp
