// Attention by heads: each query takes the sum of the values by weights that are made of its
// products with the keys.
//
// The scores of a block of queries are made, turned into weights and multiplied with the values
// while they are in the L1 cache; those of all queries never exist at once. Both products are those
// of gemm.h, which read queries where they lie and write each row of the result where it belongs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/machine/processor.h"
#include "core/op_context.h"
#include "kernels/product/gemm.h"
#include "kernels/util/flush_denormals.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

// The keys or values of a head, a row each. One of the two steps is 1.
template <typename T>
struct AttentionRows {
  const T* data = nullptr;
  int64_t row = 0;     // elements from one row to the next
  int64_t column = 1;  // elements from one column to the next
};

template <typename T>
struct AttentionHead {
  const T* queries = nullptr;
  int64_t query_row = 0;  // elements from one query to the next
  AttentionRows<T> keys = {};
  AttentionRows<T> values = {};
  T* out = nullptr;
  int64_t out_row = 0;
};

// The sizes that the heads of an op have in common.
template <typename T>
struct AttentionSizes {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t width = 0;   // of queries and keys
  int64_t values = 0;  // width of the values
  T scale = 1;         // of the products of queries and keys
  // Query i sees the keys up to i + `ahead`. Values behind those that the last query of a block
  // sees are not read.
  int64_t ahead = std::numeric_limits<int32_t>::max();

  // Packing keys and values would cost more than it saves for fewer queries.
  bool packs() const { return queries >= 4; }

  // Elements of a row of scores that may be written: whole vectors, what lies behind the keys is of
  // no account.
  int64_t padded_keys() const {
    constexpr int64_t kLanes = VectorOf<T>::kLanes;
    return (keys + kLanes - 1) / kLanes * kLanes;
  }

  // Elements from one row of scores to the next. Rows a page apart would share sets of the L1
  // cache.
  int64_t score_row() const {
    constexpr int64_t kPage = 4096 / int64_t{sizeof(T)};
    const int64_t row = padded_keys();
    return row % kPage == 0 ? row + VectorOf<T>::kLanes : row;
  }

  // Queries whose scores exist at once. They stay in the L1 cache from one step to the next, unless
  // keys and values, which each block reads, are too large for the L2 cache.
  int64_t block() const {
    const int64_t packed = (packed_keys() + packed_values()) * int64_t{sizeof(T)};
    const int64_t bytes = packed > L2CacheBytes() / 2 ? L2CacheBytes() / 4 : int64_t{16} << 10;
    const int64_t row = std::max<int64_t>(score_row() * int64_t{sizeof(T)}, 1);
    const int64_t tiles = bytes / row / kGemmRows;
    return PartOf(queries, std::clamp(tiles * kGemmRows, int64_t{kGemmRows}, kGemmBlock));
  }

  // Keys that queries before `end` see.
  int64_t seen(int64_t end) const { return std::clamp<int64_t>(end + ahead, 0, keys); }

  int64_t packed_keys() const { return packs() ? PackedSize<T>(width, keys) : 0; }
  int64_t packed_values() const { return packs() ? PackedSize<T>(keys, values) : 0; }
  // Elements that a thread works in.
  int64_t scratch() const { return packed_keys() + packed_values() + block() * score_row(); }
};

namespace attention_internal {

template <typename T>
void PackHead(const AttentionSizes<T>& s, const AttentionHead<T>& head, T* scratch) {
  PackMatrix(s.width, s.keys, head.keys.data, head.keys.column, head.keys.row, scratch);
  for (int64_t i = 0; i < s.packed_keys(); ++i) scratch[i] *= s.scale;
  PackMatrix(s.keys, s.values, head.values.data, head.values.row, head.values.column,
             scratch + s.packed_keys());
}

// Scores of the queries from `first` on.
template <typename T>
void ScoreBlock(const AttentionSizes<T>& s, const AttentionHead<T>& head, int64_t first,
                int64_t count, const T* packed, T* scores) {
  const T* const queries = head.queries + first * head.query_row;
  if (s.packs()) {
    GemmPacked(count, s.width, s.padded_keys(), queries, head.query_row, packed, scores,
               s.score_row(), /*accumulate=*/false);
  } else {
    const bool as_rows = head.keys.column == 1;
    GemmUnpacked(count, s.width, s.keys, queries, head.query_row, head.keys.data,
                 as_rows ? head.keys.row : head.keys.column, /*transposed=*/as_rows, scores,
                 s.score_row());
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < s.keys; ++j) scores[i * s.score_row() + j] *= s.scale;
    }
  }
}

// What the queries from `first` on take of the values.
template <typename T>
void TakeValues(const AttentionSizes<T>& s, const AttentionHead<T>& head, int64_t first,
                int64_t count, const T* weights, const T* packed) {
  T* const out = head.out + first * head.out_row;
  const int64_t seen = s.seen(first + count);
  if (s.packs()) {
    // Panel by panel: those of all keys lie further apart than those of the keys that are seen.
    for (int64_t j = 0; j < s.values; j += kPanel<T>) {
      GemmPacked(count, seen, std::min(s.values - j, kPanel<T>), weights, s.score_row(),
                 packed + j * s.keys, out + j, head.out_row, /*accumulate=*/false);
    }
  } else {
    const bool as_rows = head.values.column == 1;
    GemmUnpacked(count, seen, s.values, weights, s.score_row(), head.values.data,
                 as_rows ? head.values.row : head.values.column, /*transposed=*/!as_rows, out,
                 head.out_row);
  }
}

}  // namespace attention_internal

// Changes the products of a query with the keys by the row of a tensor for that query:
// change(score, element) is the new one. The elements are `step` apart, 0 or 1; `end` is the end of
// the tensor. Whole vectors where they can be read, so that who reads the scores next need not wait
// for single elements.
template <typename T, typename Change>
void ChangeScores(const AttentionSizes<T>& sizes, const T* row, int64_t step, const T* end,
                  T* scores, const Change& change) {
  const int64_t padded = sizes.padded_keys();
  if (step == 0) {
    for (int64_t j = 0; j < padded; ++j) scores[j] = change(scores[j], row[0]);
    return;
  }
  const int64_t count = end - row >= padded ? padded : sizes.keys;
  for (int64_t j = 0; j < count; ++j) scores[j] = change(scores[j], row[j]);
}

// Adds the row of a bias.
template <typename T>
void AddBias(const AttentionSizes<T>& sizes, const T* row, int64_t step, const T* end, T* scores) {
  ChangeScores(sizes, row, step, end, scores, [](T score, T bias) { return score + bias; });
}

// Computes `count` heads on the threads of `ctx`. head_of(h) is head h, an AttentionHead<T> or what
// derives from it. weigh(head, query, scores) turns the scaled products of a query with all keys
// into weights, in place, and returns what the row of the result is multiplied by; it may write
// sizes.padded_keys() elements. Bits do not depend on the number of threads.
template <typename T, typename HeadOf, typename Weigh>
absl::Status RunAttention(const KernelContext& ctx, int64_t count, const AttentionSizes<T>& sizes,
                          const HeadOf& head_of, const Weigh& weigh) {
  if (count == 0 || sizes.queries == 0) return absl::OkStatus();
  const FlushDenormals flush;
  const int64_t block = sizes.block();
  const int64_t blocks = (sizes.queries + block - 1) / block;
  constexpr double kWork = 64 * 1024;  // multiplications worth a thread of their own
  const double work = static_cast<double>(count) * static_cast<double>(sizes.queries) *
                      static_cast<double>(sizes.keys) *
                      static_cast<double>(sizes.width + sizes.values);
  const int64_t most = std::min<int64_t>(ctx.num_threads(), count * blocks);
  const int64_t parts =
      std::clamp<int64_t>(static_cast<int64_t>(std::min(work / kWork, 1e6)), 1, most);
  const int64_t scratch = sizes.scratch();
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(parts * scratch) * sizeof(T)));
  const auto run_block = [&](const auto& head, int64_t first, T* packed) {
    const int64_t rows = std::min(block, sizes.queries - first);
    const T* const values = packed + sizes.packed_keys();
    T* const scores = packed + sizes.packed_keys() + sizes.packed_values();
    attention_internal::ScoreBlock<T>(sizes, head, first, rows, packed, scores);
    T factors[kGemmBlock];
    for (int64_t i = 0; i < rows; ++i) {
      factors[i] = weigh(head, first + i, scores + i * sizes.score_row());
    }
    attention_internal::TakeValues<T>(sizes, head, first, rows, scores, values);
    for (int64_t i = 0; i < rows; ++i) {
      T* const out = head.out + (first + i) * head.out_row;
      for (int64_t j = 0; j < sizes.values; ++j) out[j] *= factors[i];
    }
  };
  ParallelFor(ctx.num_threads(), parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      T* const packed = memory.data<T>() + part * scratch;
      int64_t packed_head = -1;
      for (int64_t at = count * blocks * part / parts; at < count * blocks * (part + 1) / parts;
           ++at) {
        const int64_t h = at / blocks;
        const auto head = head_of(h);
        if (sizes.packs() && h != packed_head) {
          attention_internal::PackHead<T>(sizes, head, packed);
        }
        packed_head = h;
        run_block(head, at % blocks * block, packed);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace interp::nn
