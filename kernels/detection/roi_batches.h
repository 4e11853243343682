// Which image of a batch a row (a box, a region of interest) belongs to.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Offsets of each image's rows in `rows` (from 0 to its first dimension, not descending) by the
// lowest level of its LoD; one image without a LoD.
absl::StatusOr<std::vector<int64_t>> LodOffsets(const Tensor& rows);

// The same, from `rois_num` (rows per image, int32 or int64) or, when that is null, the LoD of
// `rois`, which must then have one.
absl::StatusOr<std::vector<int64_t>> RoiOffsets(const Tensor& rois, const Tensor* rois_num);

}  // namespace interp
