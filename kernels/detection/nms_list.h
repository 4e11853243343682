// The attributes of nms ops, detections by falling score, and the greedy suppression of one list,
// for the ops that decode or merge boxes before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/attr_reader.h"

namespace interp {

struct NmsAttrs {
  float score_threshold, nms_threshold, nms_eta;
  int64_t nms_top_k, keep_top_k, background_label;
  bool normalized;
};

// `background`: the label that is not detected unless the program names one; -1: none.
inline NmsAttrs ReadNmsAttrs(AttrReader& reader, int32_t background) {
  return {.score_threshold = reader.Float("score_threshold", 0),
          .nms_threshold = reader.Float("nms_threshold", 0.3f),
          .nms_eta = reader.Float("nms_eta", 1),
          .nms_top_k = reader.Int("nms_top_k", -1),
          .keep_top_k = reader.Int("keep_top_k", -1),
          .background_label = reader.Int("background_label", background),
          .normalized = reader.Bool("normalized", true)};
}

// How one list is suppressed.
template <typename T>
struct NmsRule {
  T threshold = 0;  // overlap that is allowed
  T eta = 1;        // below 1: factor of the threshold after each kept box, while that is above 0.5
};

// A candidate by its number. Scores are compared as floats even when they are doubles.
struct ScoredIndex {
  float score;
  int64_t index;
};

// Sorts by falling score, equal ones in their order, and keeps `most` unless that is negative.
inline void SortAndCut(std::vector<ScoredIndex>& list, int64_t most) {
  std::stable_sort(list.begin(), list.end(),
                   [](const ScoredIndex& a, const ScoredIndex& b) { return a.score > b.score; });
  if (most >= 0 && most < static_cast<int64_t>(list.size())) list.resize(most);
}

// The entries of `list` that overlap none of the kept ones before them beyond the threshold.
// `overlap(i, k)` is that of candidates i and k.
template <typename T, typename Overlap>
std::vector<ScoredIndex> SuppressList(const std::vector<ScoredIndex>& list, NmsRule<T> rule,
                                      const Overlap& overlap) {
  std::vector<ScoredIndex> kept;
  for (const ScoredIndex& entry : list) {
    const bool keep = std::all_of(kept.begin(), kept.end(), [&](const ScoredIndex& other) {
      return overlap(entry.index, other.index) <= rule.threshold;
    });
    if (!keep) continue;
    kept.push_back(entry);
    if (rule.eta < 1 && rule.threshold > T{0.5}) rule.threshold *= rule.eta;
  }
  return kept;
}

}  // namespace interp
