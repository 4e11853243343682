// TransposePlane: transposes a matrix in memory, in register blocks inside cache blocks.
// Long because each shape of a plane has its own loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/util/unaligned.h"

namespace interp {

namespace transpose_internal {

// A register block: kLanes rows of kLanes elements.
template <int kBytes>
struct ByteBlock;
template <>
struct ByteBlock<1> {
  static constexpr int kLanes = 16;
  typedef uint8_t Vector __attribute__((vector_size(16)));
};
template <>
struct ByteBlock<2> {
  static constexpr int kLanes = 8;
  typedef uint16_t Vector __attribute__((vector_size(16)));
};
template <>
struct ByteBlock<4> {
  static constexpr int kLanes = 8;
  typedef uint32_t Vector __attribute__((vector_size(32)));
};
template <>
struct ByteBlock<8> {
  static constexpr int kLanes = 4;
  typedef uint64_t Vector __attribute__((vector_size(32)));
};

// Interleaves the lower (kHigh: upper) halves of a and b.
template <bool kHigh, typename Vector, int... kLane>
inline Vector Interleave(Vector a, Vector b, std::integer_sequence<int, kLane...>) {
  constexpr int n = sizeof...(kLane);
  constexpr int first = kHigh ? n / 2 : 0;
  return __builtin_shufflevector(a, b, (first + kLane / 2 + (kLane % 2) * n)...);
}

// Row i of the source (kLanes elements at src + i * src_stride) becomes column i of the
// destination. log2(kLanes) rounds, each interleaving row i with row i + kLanes / 2.
template <int kBytes>
inline void TransposeBlock(const char* src, int64_t src_stride, char* dst, int64_t dst_stride) {
  using Vector = typename ByteBlock<kBytes>::Vector;
  constexpr int n = ByteBlock<kBytes>::kLanes;
  constexpr auto kLanes = std::make_integer_sequence<int, n>();
  Vector rows[n];
  Vector next[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(&rows[i], src + i * src_stride, sizeof(Vector));
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = Interleave<false>(rows[i], rows[i + n / 2], kLanes);
      next[2 * i + 1] = Interleave<true>(rows[i], rows[i + n / 2], kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(dst + i * dst_stride, &rows[i], sizeof(Vector));
}

// Element by element, for narrow planes; the shorter side innermost.
template <int kBytes>
void TransposeEdge(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                   int64_t columns) {
  using T = typename UnalignedElement<kBytes>::Type;
  const auto move = [=](int64_t r, int64_t c) {
    reinterpret_cast<T*>(dst + r * dst_stride)[c] =
        *reinterpret_cast<const T*>(src + c * src_stride + r * kBytes);
  };
  if (columns <= rows) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) move(r, c);
    }
  } else {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) move(r, c);
    }
  }
}

// kColumns rows of the source woven into one dense destination (planes into RGB pixels): a loop the
// compiler vectorises because the stride is known to it.
template <int kBytes, int kColumns>
void Weave(const char* src, int64_t src_stride, char* dst, int64_t rows) {
  using T = typename UnalignedElement<kBytes>::Type;
  T* const out = reinterpret_cast<T*>(dst);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      out[r * kColumns + c] = reinterpret_cast<const T*>(src + c * src_stride)[r];
    }
  }
}

// The reverse of Weave: a dense source of kRows elements per column taken apart.
template <int kBytes, int kRows>
void Unweave(const char* src, char* dst, int64_t dst_stride, int64_t columns) {
  using T = typename UnalignedElement<kBytes>::Type;
  const T* const in = reinterpret_cast<const T*>(src);
  for (int64_t c = 0; c < columns; ++c) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      reinterpret_cast<T*>(dst + r * dst_stride)[c] = in[c * kRows + r];
    }
  }
}

// True when the plane was narrow and dense enough for Weave or Unweave, and is done.
template <int kBytes>
bool TransposeNarrow(const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                     int64_t rows, int64_t columns) {
  if (dst_stride == columns * kBytes) {
    if (columns == 2) return Weave<kBytes, 2>(src, src_stride, dst, rows), true;
    if (columns == 3) return Weave<kBytes, 3>(src, src_stride, dst, rows), true;
    if (columns == 4) return Weave<kBytes, 4>(src, src_stride, dst, rows), true;
  }
  if (src_stride == rows * kBytes) {
    if (rows == 2) return Unweave<kBytes, 2>(src, dst, dst_stride, columns), true;
    if (rows == 3) return Unweave<kBytes, 3>(src, dst, dst_stride, columns), true;
    if (rows == 4) return Unweave<kBytes, 4>(src, dst, dst_stride, columns), true;
  }
  return false;
}

// A plane of at least a register block each way, in squares of whole cache lines: when rows lie a
// large power of two apart, the lines of a column fall into a few cache sets and would be gone
// before a later block came back to them. So those of the source are read to their ends, or those
// of the destination are written. A source that does not stay in the L2 cache is walked once.
// Blocks at an end overlap those before.
template <int kBytes>
void TransposeBlocks(const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                     int64_t rows, int64_t columns) {
  constexpr int64_t n = ByteBlock<kBytes>::kLanes;
  constexpr int64_t kLine = 64 / kBytes;
  constexpr int64_t kCacheWay = 4096;  // bytes between lines of one set
  constexpr int64_t kNearBytes = int64_t{1} << 20;
  const auto block = [&](int64_t r, int64_t c) {
    r = std::min(r, rows - n);
    c = std::min(c, columns - n);
    TransposeBlock<kBytes>(src + c * src_stride + r * kBytes, src_stride,
                           dst + r * dst_stride + c * kBytes, dst_stride);
  };
  const auto square = [&](int64_t r0, int64_t c0) {
    const int64_t r1 = std::min(r0 + kLine, rows);
    const int64_t c1 = std::min(c0 + kLine, columns);
    if (dst_stride % kCacheWay == 0) {
      for (int64_t r = r0; r < r1; r += n) {
        for (int64_t c = c0; c < c1; c += n) block(r, c);
      }
    } else {
      for (int64_t c = c0; c < c1; c += n) {
        for (int64_t r = r0; r < r1; r += n) block(r, c);
      }
    }
  };
  if (rows < columns && columns * src_stride > kNearBytes) {
    for (int64_t c = 0; c < columns; c += kLine) {
      for (int64_t r = 0; r < rows; r += kLine) square(r, c);
    }
  } else {
    for (int64_t r = 0; r < rows; r += kLine) {
      for (int64_t c = 0; c < columns; c += kLine) square(r, c);
    }
  }
}

}  // namespace transpose_internal

// Writes element (c, r) of the source to (r, c) of the destination: the source has `columns` rows
// of `rows` contiguous elements, `src_stride` bytes apart; the destination has `rows` rows of
// `columns` contiguous elements, `dst_stride` bytes apart.
template <int kBytes>
void TransposePlane(const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                    int64_t rows, int64_t columns) {
  using namespace transpose_internal;  // NOLINT(google-build-using-namespace)
  if constexpr (kBytes == 16) {
    TransposeEdge<kBytes>(src, src_stride, dst, dst_stride, rows, columns);
  } else {
    if (TransposeNarrow<kBytes>(src, src_stride, dst, dst_stride, rows, columns)) return;
    constexpr int64_t n = ByteBlock<kBytes>::kLanes;
    if (rows >= n && columns >= n) {
      TransposeBlocks<kBytes>(src, src_stride, dst, dst_stride, rows, columns);
    } else {
      TransposeEdge<kBytes>(src, src_stride, dst, dst_stride, rows, columns);
    }
  }
}

// dst[j * ldd + i] = src[i * lds + j] for i < rows, j < columns.
template <typename T>
void TransposeMatrix(const T* src, int64_t lds, T* dst, int64_t ldd, int64_t rows,
                     int64_t columns) {
  constexpr int kBytes = sizeof(T);
  TransposePlane<kBytes>(reinterpret_cast<const char*>(src), lds * kBytes,
                         reinterpret_cast<char*>(dst), ldd * kBytes, columns, rows);
}

}  // namespace interp
