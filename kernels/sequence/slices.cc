#include "kernels/sequence/slices.h"

#include "core/op_def.h"

namespace interp {
namespace {

absl::StatusOr<std::vector<int64_t>> OneEach(const Tensor& tensor, absl::string_view slot,
                                             int64_t sequences) {
  if (tensor.numel() != sequences) {
    return InvalidArgument("input '", slot, "' is ", DescribeType(tensor), ", expected ", sequences,
                           " numbers, one for each sequence of 'X'");
  }
  return InferContext::Integers(tensor);
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> OffsetsOfSlices(const Tensor& x, const Tensor& starts,
                                                     const Tensor& lengths) {
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  const int64_t count = SequenceCount(offsets);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, OneEach(starts, "Offset", count));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, OneEach(lengths, "Length", count));
  std::vector<int64_t> level = {0};
  level.reserve(offsets.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t most = offsets[i + 1] - offsets[i];
    if (begin[i] < 0 || rows[i] < 0 || begin[i] > most || rows[i] > most - begin[i]) {
      return InvalidArgument("sequence ", i, " of 'X' has ", most, " rows, but 'Offset' is ",
                             begin[i], " and 'Length' ", rows[i]);
    }
    level.push_back(level.back() + rows[i]);
  }
  return level;
}

}  // namespace interp
