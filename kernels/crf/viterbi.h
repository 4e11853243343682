// Viterbi's algorithm, for crf_decoding and viterbi_decode.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/product/gemm.h"

namespace interp::crf {

// Scores of tag sequences beside those of the rows.
template <typename T>
struct TagScores {
  const T* transitions = nullptr;  // [tags, tags], from row to column
  const T* start = nullptr;        // of starting in a tag; null: 0
  const T* stop = nullptr;         // of ending in a tag; null: 0
};

// Decodes one sequence after the other.
//
// Rows of tags are padded to `stride`, a whole number of vectors, so that a step has no rest.
template <typename T>
class ViterbiDecoder {
 public:
  // Elements of `scratch` for sequences of up to `longest` rows.
  static int64_t ScratchSize(int64_t tags, int64_t longest) {
    return StrideOf(tags) * (tags + 2 + longest);
  }

  // REQUIRES: `scratch` is aligned to kVectorBytes and, like the scores, outlives this.
  ViterbiDecoder(int64_t tags, const TagScores<T>& scores, T* scratch)
      : tags_(tags), stride_(StrideOf(tags)), scores_(scores), transitions_(scratch) {
    for (int64_t i = 0; i < tags; ++i, scratch += stride_) {
      std::copy_n(scores.transitions + i * tags, tags, scratch);
      std::fill(scratch + tags, scratch + stride_, T{0});
    }
    best_[0] = scratch;
    best_[1] = scratch + stride_;
    from_ = reinterpret_cast<Tag*>(scratch + 2 * stride_);
  }

  // Writes the best of all tag sequences to path[0] to path[length - 1] and returns its score. Of
  // equal ones that with the lowest last tag wins, then the tag before it. A score that is not
  // above the lowest number (infinity, NaN) never wins against tag 0. Without rows the score is
  // that of a sequence of one row that does not end. REQUIRES: `rows` has at least one row.
  T Decode(const T* rows, int64_t length, int64_t* path) {
    for (int64_t i = 0; i < tags_; ++i) {
      best_[0][i] = rows[i] + (scores_.start == nullptr ? T{0} : scores_.start[i]);
    }
    for (int64_t t = 1; t < length; ++t) {
      Step(best_[(t - 1) % 2], rows + t * tags_, best_[t % 2], from_ + t * stride_);
    }
    T* const last = best_[std::max<int64_t>(length - 1, 0) % 2];
    if (scores_.stop != nullptr && length > 0) {
      for (int64_t i = 0; i < tags_; ++i) last[i] += scores_.stop[i];
    }
    const int64_t tag = Best(last);
    if (length > 0) path[length - 1] = tag;
    for (int64_t t = length - 1; t > 0; --t) path[t - 1] = from_[t * stride_ + path[t]];
    return last[tag];
  }

 private:
  using Tag = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T V __attribute__((vector_size(kVectorBytes), may_alias));
  typedef Tag Tags __attribute__((vector_size(kVectorBytes), may_alias));
  static constexpr int kLanes = VectorOf<T>::kLanes;

  static int64_t StrideOf(int64_t tags) { return (tags + kLanes - 1) / kLanes * kLanes; }

  // From the best scores `before` of sequences that end in each tag those that are one row longer,
  // and the tag before the last on each.
  void Step(const T* before, const T* row, T* after, Tag* from) const {
    for (int64_t column = 0; column < stride_; column += kLanes) {
      V best = V{} + std::numeric_limits<T>::lowest();
      Tags best_from = {};
      const T* transition = transitions_ + column;
      for (int64_t i = 0; i < tags_; ++i, transition += stride_) {
        const V score = before[i] + *reinterpret_cast<const V*>(transition);
        const Tags better = score > best;
        best = better ? score : best;
        best_from = better ? Tags{} + static_cast<Tag>(i) : best_from;
      }
      *reinterpret_cast<V*>(after + column) = best;
      *reinterpret_cast<Tags*>(from + column) = best_from;
    }
    for (int64_t i = 0; i < tags_; ++i) after[i] += row[i];
  }

  int64_t Best(const T* scores) const {
    T best = std::numeric_limits<T>::lowest();
    int64_t tag = 0;
    for (int64_t i = 0; i < tags_; ++i) {
      if (scores[i] > best) {
        best = scores[i];
        tag = i;
      }
    }
    return tag;
  }

  int64_t tags_;
  int64_t stride_;
  TagScores<T> scores_;
  const T* transitions_;  // padded
  T* best_[2];            // of the last row and of the one before, in turns
  Tag* from_;             // by row
};

}  // namespace interp::crf
