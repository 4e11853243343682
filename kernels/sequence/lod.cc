#include "kernels/sequence/lod.h"

namespace interp {
namespace {

absl::Status CheckLevel(Offsets level, int64_t parts, absl::string_view slot,
                        absl::string_view what) {
  if (!level.empty() && level.front() == 0 && level.back() == parts &&
      std::is_sorted(level.begin(), level.end())) {
    return absl::OkStatus();
  }
  return InvalidArgument("the LoD of input '", slot, "' does not fit its ", parts, " ", what,
                         ": offsets must rise from 0 to ", parts);
}

absl::Status CheckHasLod(const Tensor& tensor, absl::string_view slot) {
  if (!tensor.lod.empty() && tensor.shape.rank() > 0) return absl::OkStatus();
  return InvalidArgument("input '", slot, "' is ", DescribeType(tensor),
                         " without LoD, expected sequences; feed it with a LoD");
}

}  // namespace

absl::Status CheckOffsets(Offsets level, int64_t rows, absl::string_view slot) {
  return CheckLevel(level, rows, slot, "rows");
}

absl::StatusOr<Offsets> SequenceOffsets(const Tensor& tensor, absl::string_view slot) {
  INTERP_RETURN_IF_ERROR(CheckHasLod(tensor, slot));
  INTERP_RETURN_IF_ERROR(CheckOffsets(tensor.lod.back(), tensor.shape[0], slot));
  return Offsets(tensor.lod.back());
}

absl::StatusOr<Offsets> OnlyLevelOffsets(const Tensor& tensor, absl::string_view slot) {
  if (tensor.lod.size() > 1) {
    return InvalidArgument("input '", slot, "' has a LoD of ", tensor.lod.size(),
                           " levels, expected 1");
  }
  return SequenceOffsets(tensor, slot);
}

absl::StatusOr<std::vector<int64_t>> LevelOffsets(const Tensor& tensor, int64_t level,
                                                  absl::string_view slot) {
  INTERP_ASSIGN_OR_RETURN(const Offsets rows, SequenceOffsets(tensor, slot));
  const int64_t levels = std::ssize(tensor.lod);
  if (level < 0 || level >= levels) {
    return InvalidArgument("input '", slot, "' has a LoD of ", levels, " levels, expected a level ",
                           level);
  }
  std::vector<int64_t> offsets(rows.begin(), rows.end());
  for (int64_t i = levels - 2; i >= level; --i) {
    const Offsets parts = tensor.lod[i];
    INTERP_RETURN_IF_ERROR(
        CheckLevel(parts, SequenceCount(offsets), slot, "sequences of the level below"));
    std::vector<int64_t> joined;
    joined.reserve(parts.size());
    for (const int64_t part : parts) joined.push_back(offsets[part]);
    offsets = std::move(joined);
  }
  return offsets;
}

}  // namespace interp
