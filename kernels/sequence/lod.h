// Which rows of a tensor belong to which sequence.
//
// Feeds have a LoD that fits their rows, but an op may hand on one that does not, and the LoDs of
// two inputs may disagree. `infer` therefore takes offsets from here, and kernels index with what
// `infer` has seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Sequence i has the rows [offsets[i], offsets[i + 1]).
using Offsets = absl::Span<const int64_t>;

inline int64_t SequenceCount(Offsets offsets) { return std::ssize(offsets) - 1; }

// Rows of the longest sequence; 0 without sequences.
inline int64_t LongestSequence(Offsets offsets) {
  int64_t longest = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    longest = std::max(longest, offsets[i] - offsets[i - 1]);
  }
  return longest;
}

// Elements of a row. REQUIRES: rank of at least 1.
inline int64_t RowSize(const Tensor& tensor) { return tensor.shape.numel(1, tensor.shape.rank()); }

// Calls body(row, begin, end) for the rows [from, to) of a tensor and the sequences [begin, end)
// that they are in. REQUIRES: `to` is at most the rows of all sequences.
template <typename Body>
void ForEachRow(Offsets offsets, int64_t from, int64_t to, const Body& body) {
  size_t next = std::upper_bound(offsets.begin(), offsets.end(), from) - offsets.begin();
  for (int64_t row = from; row < to; ++row) {
    while (row >= offsets[next]) ++next;
    body(row, offsets[next - 1], offsets[next]);
  }
}

// InvalidArgument unless the level starts with 0, does not descend and ends with `rows`.
absl::Status CheckOffsets(Offsets level, int64_t rows, absl::string_view slot);

// Offsets of the sequences in `tensor`: its lowest level. InvalidArgument when there is no LoD or
// when it does not fit the rows. The span lives as long as tensor.lod.
absl::StatusOr<Offsets> SequenceOffsets(const Tensor& tensor, absl::string_view slot);

// The same for ops that take one level only.
absl::StatusOr<Offsets> OnlyLevelOffsets(const Tensor& tensor, absl::string_view slot);

// The sequences of a level, 0 the highest, in rows: parts of parts joined.
absl::StatusOr<std::vector<int64_t>> LevelOffsets(const Tensor& tensor, int64_t level,
                                                  absl::string_view slot);

// Sequences that an op may make out of fewer. Offsets are kept in host memory outside the pool, and
// repeating empty sequences takes no other.
inline constexpr int64_t kMostNewSequences = int64_t{1} << 26;

}  // namespace interp
