#include "kernels/detection/roi_batches.h"

#include <algorithm>

#include "core/op_def.h"

namespace interp {

absl::StatusOr<std::vector<int64_t>> LodOffsets(const Tensor& rows) {
  const int64_t count = rows.shape[0];
  if (rows.lod.empty()) return std::vector<int64_t>{0, count};
  const std::vector<int64_t>& level = rows.lod.back();
  if (level.empty() || level.front() != 0 || level.back() != count ||
      !std::is_sorted(level.begin(), level.end())) {
    return InvalidArgument("the LoD does not divide the ", count, " rows: it must rise from 0 to ",
                           count);
  }
  return level;
}

absl::StatusOr<std::vector<int64_t>> RoiOffsets(const Tensor& rois, const Tensor* rois_num) {
  if (rois_num == nullptr) {
    if (!rois.lod.empty()) return LodOffsets(rois);
    return InvalidArgument(
        "boxes have neither a 'RoisNum' input nor a LoD to say which image they "
        "belong to");
  }
  if (rois_num->dtype != DType::kInt32 && rois_num->dtype != DType::kInt64) {
    return InvalidArgument("input 'RoisNum' is ", Name(rois_num->dtype),
                           ", expected int32 or int64");
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<int64_t> offsets, InferContext::Integers(*rois_num));
  int64_t left = rois.shape[0];
  for (const int64_t count : offsets) {
    if (count < 0 || count > left) {
      return InvalidArgument("input 'RoisNum' has a count of ", count, " where ", left,
                             " boxes are left");
    }
    left -= count;
  }
  if (left != 0) {
    return InvalidArgument("input 'RoisNum' counts ", rois.shape[0] - left,
                           " boxes, but there are ", rois.shape[0]);
  }
  offsets.insert(offsets.begin(), 0);
  for (size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  return offsets;
}

}  // namespace interp
