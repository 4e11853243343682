// Adding rows to the rows that an index lists: what gathering is, backwards.
#pragma once

#include <cstdint>

#include "kernels/util/arithmetic.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// Where AddRows writes: `outer` blocks of `rows` rows of `columns` elements.
struct AddedRows {
  int64_t outer = 1;
  int64_t rows = 0;
  int64_t columns = 0;
};

namespace row_add {

// What one thread adds: rows [first_row, last_row), columns [first_column, last_column).
struct Part {
  int64_t first_row = 0;
  int64_t last_row = 0;
  int64_t first_column = 0;
  int64_t last_column = 0;
};

template <typename T, typename Index>
void AddPart(const Part& part, int64_t columns, const T* src, const Index* indices, int64_t count,
             T* dst) {
  for (int64_t n = 0; n < count; ++n) {
    const int64_t row = indices[n];
    if (row < part.first_row || row >= part.last_row) continue;
    const T* const from = src + n * columns;
    T* const to = dst + row * columns;
    for (int64_t c = part.first_column; c < part.last_column; ++c) to[c] = WrapAdd(to[c], from[c]);
  }
}

}  // namespace row_add

// In each block of `dst`, adds the rows of the block of `src` to the rows indices[0], indices[1],
// ... in this order. Threads share out blocks, else columns, else rows of `dst`: an element belongs
// to one of them, so results do not depend on their number. REQUIRES: the indices have been
// checked.
template <typename T, typename Index>
void AddRows(int num_threads, const AddedRows& shape, const T* src, const Index* indices,
             int64_t count, T* dst) {
  constexpr int64_t kLine = 64 / sizeof(T);  // columns that threads do not share
  const int64_t outer = shape.outer;
  const int64_t rows = shape.rows;
  const int64_t columns = shape.columns;
  const int64_t work = count * columns;
  const auto add = [&](int64_t block, const row_add::Part& part) {
    row_add::AddPart(part, columns, src + block * work, indices, count,
                     dst + block * rows * columns);
  };
  const int64_t lines = columns / kLine;
  if (outer >= num_threads || outer * work < 2 * kElementwiseGrain) {
    const int64_t grain = GrainFor(work);
    ParallelFor(num_threads, outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) add(b, {0, rows, 0, columns});
    });
  } else if (lines >= 2 * num_threads) {
    ParallelFor(num_threads, lines, 1, [&](int64_t begin, int64_t end) {
      const int64_t last = end == lines ? columns : end * kLine;
      for (int64_t b = 0; b < outer; ++b) add(b, {0, rows, begin * kLine, last});
    });
  } else {
    ParallelFor(num_threads, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = 0; b < outer; ++b) add(b, {begin, end, 0, columns});
    });
  }
}

}  // namespace interp
