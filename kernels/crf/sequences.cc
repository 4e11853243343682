#include "kernels/crf/sequences.h"

namespace interp::crf {

absl::StatusOr<std::vector<Sequence>> PaddedSequences(const Tensor& lengths, absl::string_view slot,
                                                      int64_t steps) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> values, InferContext::Integers(lengths));
  std::vector<Sequence> sequences;
  sequences.reserve(values.size());
  for (const int64_t length : values) {
    if (length < 0 || length > steps) {
      return InvalidArgument("input '", slot, "' gives sequence ", sequences.size(), " the length ",
                             length, ", expected 0 to ", steps);
    }
    sequences.push_back({static_cast<int64_t>(sequences.size()) * steps, length});
  }
  return sequences;
}

std::vector<Sequence> LodSequences(Offsets offsets) {
  std::vector<Sequence> sequences;
  sequences.reserve(offsets.size());
  for (size_t i = 1; i < offsets.size(); ++i) {
    sequences.push_back({offsets[i - 1], offsets[i] - offsets[i - 1]});
  }
  return sequences;
}

int64_t LongestOf(const std::vector<Sequence>& sequences) {
  int64_t longest = 0;
  for (const Sequence& sequence : sequences) longest = std::max(longest, sequence.length);
  return longest;
}

}  // namespace interp::crf
