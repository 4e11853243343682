// The inner loops of GemmPacked, see gemm.h: tiles of C whose sums stay in registers.
// Long because each width of vectors and each kind of tile has its loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/util/register_vectors.h"
#include "kernels/util/transpose_plane.h"

namespace interp::nn {

inline constexpr int kGemmRows =
    kVectorBytes == 64 ? 12 : 6;  // times 2 sums, of 32 or 16 registers

// Rows of the highest tile for elements of type T. As many registers as possible pay for float32
// alone: the others are rare, and tiles of all heights are much code.
template <typename T>
inline constexpr int kTileRows = std::is_same_v<T, float> ? kGemmRows : std::max(4, kGemmRows / 2);

namespace lanes_internal {

template <typename T, int kCount>
struct Lanes {
  typedef T type __attribute__((vector_size(kCount * sizeof(T))));
};

template <typename T, typename V, typename Merge, int... kLane>
T Fold(V v, const Merge& merge, std::integer_sequence<int, kLane...>) {
  constexpr int kHalf = sizeof...(kLane);
  if constexpr (kHalf == 1) {
    return merge(T{v[0]}, T{v[1]});
  } else {
    using Half = typename Lanes<T, kHalf>::type;
    const Half low = __builtin_shufflevector(v, v, kLane...);
    const Half high = __builtin_shufflevector(v, v, (kLane + kHalf)...);
    return Fold<T, Half>(merge(low, high), merge, std::make_integer_sequence<int, kHalf / 2>());
  }
}

}  // namespace lanes_internal

// The lanes of a vector, joined by `merge`, which takes vectors of any length and single elements:
// halves with halves, as steps one after the other would wait for each other.
template <typename T, typename Merge>
T FoldLanes(typename VectorOf<T>::type v, const Merge& merge) {
  constexpr int kHalf = VectorOf<T>::kLanes / 2;
  return lanes_internal::Fold<T>(v, merge, std::make_integer_sequence<int, kHalf>());
}

// Columns of a panel: two vectors.
template <typename T>
inline constexpr int64_t kPanel = 2 * VectorOf<T>::kLanes;

namespace gemm_internal {

// Keeps GCC from reading the value from memory again at each of its uses, which makes a tile wait
// for loads.
template <typename V>
inline void KeepInRegister([[maybe_unused]] V& value) {
#if defined(__x86_64__)
  asm("" : "+v"(value));
#endif
}

// How A lies in memory: row by row or column by column, `lda` apart, or packed to the rows of one
// tile after the other, those column by column; `lda` are its columns then.
enum class Order { kRows, kColumns, kTiles };

// Element (i, p) of A, which is not packed.
template <Order kOrder, typename T>
inline const T* ElementOfA(const T* a, int64_t lda, int64_t i, int64_t p) {
  static_assert(kOrder != Order::kTiles);
  return kOrder == Order::kRows ? a + i * lda + p : a + p * lda + i;
}

// The first element of the tile whose first row is `row`.
template <Order kOrder, typename T>
inline const T* TileOfA(const T* a, int64_t lda, int64_t row) {
  return kOrder == Order::kColumns ? a + row : a + row * lda;
}

// What a tile with kFetches brings into the L2 cache while it multiplies: for each row of B the
// line that is `step` bytes further on.
struct Fetch {
  const char* from = nullptr;
  int64_t step = 0;
};

// One tile: kRows rows of A times kVectors vectors of columns of B, two to a panel. The loops are
// unrolled early, or GCC would clear and store the sums in memory, too. A function of its own:
// tiles beside each other would take each other's registers.
template <Order kOrder, typename T, int kRows, int kVectors, bool kFetches = false>
[[gnu::noinline]] void Tile(int64_t k, const T* a, int64_t lda, const T* panels,
                            int64_t panel_stride, T* c, int64_t ldc, bool accumulate,
                            [[maybe_unused]] Fetch fetch = {}) {
  using V = typename VectorOf<T>::type;
  using U = typename VectorOf<T>::unaligned;
  constexpr int kLanes = VectorOf<T>::kLanes;
  constexpr Order kWithin = kOrder == Order::kTiles ? Order::kColumns : kOrder;
  if constexpr (kOrder == Order::kTiles) lda = kRows;
  V sum[kRows][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) sum[i][j] = V{};
  }
  // The rows of C lie too far apart for the processor to see them coming.
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) __builtin_prefetch(c + i * ldc + j * kLanes, 1);
  }
  for (int64_t p = 0; p < k; ++p) {
    if constexpr (kFetches) {
      __builtin_prefetch(fetch.from, /*rw=*/0, /*locality=*/2);
      fetch.from += fetch.step;
    }
    V row[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) {
      row[j] = *reinterpret_cast<const V*>(panels + j / 2 * panel_stride + p * kPanel<T> +
                                           j % 2 * kLanes);
      if constexpr (kRows > 1) KeepInRegister(row[j]);
    }
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const T x = *ElementOfA<kWithin>(a, lda, i, p);
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sum[i][j] += x * row[j];
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) {
      U* out = reinterpret_cast<U*>(c + i * ldc + j * kLanes);
      *out = accumulate ? *out + sum[i][j] : sum[i][j];
    }
  }
}

// The same, of which `columns` are stored: by way of memory, so that other tiles are little code.
template <Order kOrder, typename T, int kRows, int kVectors>
[[gnu::noinline]] void NarrowTile(int64_t k, const T* a, int64_t lda, const T* panels,
                                  int64_t panel_stride, T* c, int64_t ldc, int64_t columns,
                                  bool accumulate) {
  constexpr int64_t kWidth = kVectors * VectorOf<T>::kLanes;
  alignas(kVectorBytes) T sums[kRows * kWidth];
  Tile<kOrder, T, kRows, kVectors>(k, a, lda, panels, panel_stride, sums, kWidth,
                                   /*accumulate=*/false);
  for (int i = 0; i < kRows; ++i) {
    const T* const row = sums + i * kWidth;
    T* const out = c + i * ldc;
    for (int64_t j = 0; j < columns; ++j) out[j] = accumulate ? out[j] + row[j] : row[j];
  }
}

// Calls body.template operator()<count>(). REQUIRES: 1 <= count <= kMost.
template <int kMost, typename Body>
void WithCount(int64_t count, const Body& body) {
  if constexpr (kMost > 1) {
    if (count < kMost) return WithCount<kMost - 1>(count, body);
  }
  body.template operator()<kMost>();
}

// Panels that a tile of `rows` rows takes at once. The sums of fewer would not hide the latency of
// an addition; the registers hold the sums and a row of the panels. A single row reads the panels
// from memory, faster the more of them it reads at once.
template <typename T>
constexpr int PanelsAtOnce(int rows) {
  constexpr int kRegisters = kVectorBytes == 64 ? 32 : 16;
  constexpr bool kRare = !std::is_same_v<T, float>;
  if (rows == 1) return kRare ? 4 : kRegisters / 4;
  return std::clamp((kRegisters - 2) / (2 * rows + 2), 1, kRare ? 2 : 4);
}

// One slice of the product: `depth` rows of B, whose panels are `panel_stride` apart.
template <Order kOrder, typename T>
struct Slice {
  int64_t depth;
  int64_t n;
  const T* a;
  int64_t lda;
  const T* panels;
  int64_t panel_stride;
  T* c;
  int64_t ldc;
  bool accumulate;
  bool far = false;          // B comes from beyond the L2 cache
  const T* after = nullptr;  // then what is read behind the last panel; null: nothing

  // The columns from j on of kRows rows, in steps of kPanels panels while there are so many.
  template <int kRows, int kPanels, bool kFetches = false>
  int64_t Columns(int64_t row, int64_t j, [[maybe_unused]] Fetch fetch = {}) const {
    constexpr int64_t kWidth = kPanel<T> * kPanels;
    constexpr int64_t kNarrow = kWidth - kPanel<T> / 2;  // half of the last panel left out
    for (; j + kWidth - kPanel<T> < n; j += kWidth) {
      const T* const first = panels + j / kPanel<T> * panel_stride;
      const T* const rows = TileOfA<kOrder>(a, lda, row);
      T* const to = c + row * ldc + j;
      const int64_t columns = std::min(n - j, kWidth);
      if (columns == kWidth) {
        Tile<kOrder, T, kRows, 2 * kPanels, kFetches>(depth, rows, lda, first, panel_stride, to,
                                                      ldc, accumulate, fetch);
      } else if (columns == kNarrow) {
        Tile<kOrder, T, kRows, 2 * kPanels - 1>(depth, rows, lda, first, panel_stride, to, ldc,
                                                accumulate);
      } else if (columns > kNarrow) {
        NarrowTile<kOrder, T, kRows, 2 * kPanels>(depth, rows, lda, first, panel_stride, to, ldc,
                                                  columns, accumulate);
      } else {
        NarrowTile<kOrder, T, kRows, 2 * kPanels - 1>(depth, rows, lda, first, panel_stride, to,
                                                      ldc, columns, accumulate);
      }
    }
    return j;
  }

  // At most kTileRows rows: one pass over the panels.
  void FewRows(int64_t rows) const {
    WithCount<kTileRows<T>>(rows, [&]<int kRows>() {
      constexpr int kPanels = PanelsAtOnce<T>(kRows);
      const int64_t rest = Columns<kRows, kPanels>(0, 0);
      if constexpr (kPanels > 1) {
        if (rest >= n) return;
        WithCount<kPanels - 1>((n - rest + kPanel<T> - 1) / kPanel<T>,
                               [&]<int kRest>() { Columns<kRows, kRest>(0, rest); });
      }
    });
  }

  // Calls body.template operator()<height>(first, last) for rows [first, last) in tiles of equal
  // heights, then for those in tiles of one row less: low tiles are slow.
  template <typename Body>
  static void ForEachHeight(int64_t rows, const Body& body) {
    const int64_t tiles = (rows + kTileRows<T> - 1) / kTileRows<T>;
    const int64_t height = (rows + tiles - 1) / tiles;
    WithCount<kTileRows<T>>(height, [&]<int kRows>() {
      const int64_t high = (rows - tiles * (kRows - 1)) * kRows;
      body.template operator()<kRows>(int64_t{0}, high);
      if constexpr (kRows > 1) body.template operator()<kRows - 1>(high, rows);
    });
  }

  // The share of a tile of rows [row, next_row) of `rows` in fetching `panel`, the one behind that
  // which is read, so that it is there when the last of them are done. The processor by itself
  // begins with a panel when it is read, and few rows do not hide that. Bit by bit: the processor
  // keeps track of a few lines at once, and all at once would hold up the loads of the tile.
  Fetch ShareOf(const T* panel, int64_t row, int64_t next_row, int64_t rows) const {
    const int64_t bytes = depth * kPanel<T> * int64_t{sizeof(T)};
    const int64_t first = bytes * row / rows;
    return {reinterpret_cast<const char*>(panel) + first,
            (bytes * next_row / rows - first + depth - 1) / depth};
  }

  // All rows against one panel after the other, which stays in the L1 cache.
  void ManyRows(int64_t rows) const {
    for (int64_t j = 0; j < n; j += kPanel<T>) {
      Slice panel = *this;
      panel.n = std::min(n - j, kPanel<T>);
      panel.panels += j / kPanel<T> * panel_stride;
      panel.c += j;
      const T* const next = j + kPanel<T> < n ? panel.panels + panel_stride : after;
      const bool fetches = far && next != nullptr;
      ForEachHeight(rows, [&]<int kRows>(int64_t first, int64_t last) {
        for (int64_t i = first; i < last; i += kRows) {
          if (fetches) {
            panel.template Columns<kRows, 1, true>(i, 0, ShareOf(next, i, i + kRows, rows));
          } else {
            panel.template Columns<kRows, 1>(i, 0);
          }
        }
      });
    }
  }

  // The same slice with its `rows` rows of A copied to `tiles`, of rows * depth elements.
  Slice<Order::kTiles, T> Packed(int64_t rows, T* tiles) const {
    ForEachHeight(rows, [&]<int kRows>(int64_t first, int64_t last) {
      if constexpr (kOrder == Order::kRows) {
        for (int64_t i = first; i < last; i += kRows) {
          TransposeMatrix(TileOfA<kOrder>(a, lda, i), lda, tiles + i * depth, int64_t{kRows}, kRows,
                          depth);
        }
      } else {
        // A column at a time: it lies in one piece, and the next one in other pages.
        for (int64_t p = 0; p < depth; ++p) {
          for (int64_t i = first; i < last; i += kRows) {
            std::memcpy(tiles + i * depth + p * kRows, a + p * lda + i, kRows * sizeof(T));
          }
        }
      }
    });
    return {depth, n, tiles, depth, panels, panel_stride, c, ldc, accumulate, far, after};
  }
};

}  // namespace gemm_internal

}  // namespace interp::nn
