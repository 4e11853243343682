// The sequences of an op that takes them either padded, with their lengths, or joined, with a LoD.
#pragma once

#include <algorithm>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp::crf {

// Rows of a matrix whose rows are those of all sequences.
struct Sequence {
  int64_t first = 0;
  int64_t length = 0;
};

// Sequences of a tensor [batch, steps, ...] with a length for each, from input `slot`.
// InvalidArgument when a length is not in [0, steps].
absl::StatusOr<std::vector<Sequence>> PaddedSequences(const Tensor& lengths, absl::string_view slot,
                                                      int64_t steps);

// Sequences of a LoD level.
std::vector<Sequence> LodSequences(Offsets offsets);

int64_t LongestOf(const std::vector<Sequence>& sequences);

}  // namespace interp::crf
