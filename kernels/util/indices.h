// Index tensors (int32 or int64) and the row gathers they drive.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "core/tensor.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// Calls body(pointer to the values) with the type of `index` and returns its status. Error when the
// tensor is neither int32 nor int64.
template <typename Body>
absl::Status WithIndices(const Tensor& index, absl::string_view name, const Body& body) {
  if (index.dtype == DType::kInt32) return body(index.data<int32_t>());
  if (index.dtype == DType::kInt64) return body(index.data<int64_t>());
  return InvalidArgument("'", name, "' is ", DescribeType(index), ", expected int32 or int64");
}

// InvalidArgument when one of the `count` values is outside [0, limit).
template <typename Index>
absl::Status CheckIndices(const Index* values, int64_t count, int64_t limit,
                          absl::string_view name) {
  bool inside = true;
  for (int64_t i = 0; i < count; ++i) inside &= values[i] >= 0 && values[i] < limit;
  if (inside) return absl::OkStatus();
  int64_t bad = 0;
  while (values[bad] >= 0 && values[bad] < limit) ++bad;
  return InvalidArgument("'", name, "' has the value ", values[bad], " at position ", bad,
                         ", expected 0 to ", limit - 1);
}

// Where GatherRows reads: `outer` blocks of `rows` rows of `row_bytes` bytes.
struct RowBlocks {
  int64_t outer = 1;
  int64_t rows = 0;
  int64_t row_bytes = 0;
};

// In each block of `src`, copies the rows indices[0], indices[1], ... one after the other to `dst`.
// REQUIRES: the indices have been checked.
template <typename Index>
void GatherRows(int num_threads, const RowBlocks& blocks, const void* src, const Index* indices,
                int64_t count, void* dst) {
  const int64_t bytes = blocks.row_bytes;
  if (bytes == 0) return;
  const int64_t grain = GrainFor(bytes, 128 * 1024);
  ParallelFor(num_threads, blocks.outer * count, grain, [&](int64_t begin, int64_t end) {
    int64_t i = begin % count;
    const char* block = static_cast<const char*>(src) + begin / count * blocks.rows * bytes;
    char* out = static_cast<char*>(dst) + begin * bytes;
    for (int64_t n = begin; n < end; ++n, out += bytes) {
      const char* const row = block + static_cast<int64_t>(indices[i]) * bytes;
      if (bytes == 4) {
        std::memcpy(out, row, 4);
      } else if (bytes == 8) {
        std::memcpy(out, row, 8);
      } else {
        std::memcpy(out, row, static_cast<size_t>(bytes));
      }
      if (++i == count) {
        i = 0;
        block += blocks.rows * bytes;
      }
    }
  });
}

// Calls body with an unsigned integer (or a pair of them) of the size of `dtype`, for loops that
// move elements without looking at them.
template <typename Body>
auto WithElementSize(DType dtype, const Body& body) {
  struct Wide {
    uint64_t halves[2];
  };
  switch (SizeOf(dtype)) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    case 8:
      return body(uint64_t{});
    default:
      return body(Wide{});
  }
}

}  // namespace interp
