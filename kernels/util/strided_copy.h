// CopyStrided: the loop behind the ops that move data without computing (transpose, concat, slice,
// expand, flip, layout changes, ...). An op only says where things lie; how to move them fast is
// decided here, in one place.
//
// A job is a box: per dimension its size and how far one step goes in the source and in the
// destination. Jobs are first simplified (sizes of 1 dropped, dimensions sorted by destination,
// neighbours that lie alike merged), then run as row copies, as blocked two-dimensional transposes
// or as strided rows, on several threads when the box is large.
//
// Cost: no allocation; simplifying takes some tens of nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/tensor.h"
#include "kernels/util/strides.h"

namespace interp {

struct CopyDim {
  int64_t size = 1;
  int64_t src_stride = 0;  // elements to the next source element; 0 repeats, negative goes back
  int64_t dst_stride = 0;  // elements to the next destination element; positive unless size is 1
};

// Room for every dimension of a tensor split in two (tile).
inline constexpr int kMaxCopyRank = 2 * kMaxRank;
using CopyDims = absl::InlinedVector<CopyDim, kMaxCopyRank>;

// Copies the box from `src` to `dst`, the addresses of its first elements. Element size is 1, 2, 4,
// 8 or 16 bytes. REQUIRES: dims.size() <= kMaxCopyRank; no two destinations coincide; source and
// destination do not overlap.
void CopyStrided(int num_threads, size_t element_bytes, absl::Span<const CopyDim> dims,
                 const void* src, void* dst);

// Writes `count` copies of the element at `value`.
void FillElements(int num_threads, size_t element_bytes, const void* value, void* dst,
                  int64_t count);

// Copies `in` to `out` across layouts. REQUIRES: same shape and dtype, both have memory.
void CopyTensor(int num_threads, const Tensor& in, Tensor& out);

// The address `elements` elements after `base`.
inline const char* At(const void* base, int64_t elements, size_t element_bytes) {
  return static_cast<const char*>(base) + elements * static_cast<int64_t>(element_bytes);
}
inline char* At(void* base, int64_t elements, size_t element_bytes) {
  return static_cast<char*>(base) + elements * static_cast<int64_t>(element_bytes);
}

}  // namespace interp
