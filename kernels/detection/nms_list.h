// The attributes of nms ops, detections by falling score, and the greedy suppression of one list,
// for the ops that decode or merge boxes before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/attr_reader.h"
#include "core/shape.h"
#include "core/status.h"

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

// Whether a box may have that many coordinates: those of two corners, or of the 4, 8, 12 or 16
// corners of a polygon.
inline bool IsBoxSize(int64_t size) {
  return size == 4 || size == 8 || size == 16 || size == 24 || size == 32;
}

// InvalidArgument unless BBoxes is [N,M,size] and Scores [N,C,M], where all classes share boxes.
inline absl::Status CheckBoxesAndScores(const Shape& boxes, const Shape& scores) {
  if (scores.rank() != 3) {
    return InvalidArgument("input 'Scores' has shape ", ToString(scores), ", expected [N,C,M]");
  }
  const bool fits = boxes.rank() == 3 && boxes[0] == scores[0] && boxes[1] == scores[2];
  if (fits && IsBoxSize(boxes[2])) return absl::OkStatus();
  return InvalidArgument("input 'BBoxes' has shape ", ToString(boxes), ", expected [", scores[0],
                         ",", scores[2], ",size] with a size of 4, 8, 16, 24 or 32");
}

// InvalidArgument for more boxes than numbers of 32 bits tell apart.
inline absl::Status CheckBoxCount(const Shape& boxes) {
  if (boxes[0] * boxes[1] <= INT32_MAX) return absl::OkStatus();
  return InvalidArgument("input 'BBoxes' has shape ", ToString(boxes),
                         ", more boxes than 32-bit indices");
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
