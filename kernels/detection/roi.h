// What roi_align and roi_pool have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attr_reader.h"
#include "core/op_context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "kernels/detection/roi_batches.h"

namespace interp {

// Bins per region, and the size of the feature map relative to the image.
struct RoiGrid {
  int64_t height, width;
  float spatial_scale;
};

inline RoiGrid ReadRoiGrid(AttrReader& reader) {
  const RoiGrid grid = {.height = reader.Int("pooled_height", 1),
                        .width = reader.Int("pooled_width", 1),
                        .spatial_scale = reader.Float("spatial_scale", 1)};
  if (grid.height <= 0 || grid.width <= 0) {
    reader.Fail(absl::StrCat("attributes 'pooled_height' and 'pooled_width' are ", grid.height,
                             " and ", grid.width, ", expected more than 0"));
  }
  return grid;
}

inline absl::StatusOr<Shape> InferRoiShape(const Shape& x, const Shape& rois, const RoiGrid& grid) {
  if (x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 4 dims (NCHW)");
  }
  if (rois.rank() != 2 || rois[1] != 4) {
    return InvalidArgument("input 'ROIs' has shape ", ToString(rois), ", expected [R,4]");
  }
  const Shape out = {rois[0], x[1], grid.height, grid.width};
  if (!out.CheckedNumel().has_value()) {
    return InvalidArgument("the output ", ToString(out), " is too large");
  }
  return out;
}

// Infers output 0 of pooling X, input 0, over ROIs, input 1.
inline absl::Status InferRoiPooling(InferContext& ctx, const RoiGrid& grid) {
  INTERP_ASSIGN_OR_RETURN(const Shape out,
                          InferRoiShape(ctx.input(0).shape, ctx.input(1).shape, grid));
  ctx.SetShape(0, out);
  return absl::OkStatus();
}

// The image of each region.
inline absl::StatusOr<std::vector<int64_t>> ImageOfRoi(const Tensor& rois, const Tensor* rois_num,
                                                       int64_t num_images) {
  if (rois.shape[0] == 0) return std::vector<int64_t>();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, RoiOffsets(rois, rois_num));
  if (static_cast<int64_t>(offsets.size()) - 1 != num_images) {
    return InvalidArgument("regions belong to ", offsets.size() - 1, " images, but 'X' has ",
                           num_images);
  }
  std::vector<int64_t> images;
  for (int64_t image = 0; image < num_images; ++image) {
    images.insert(images.end(), offsets[image + 1] - offsets[image], image);
  }
  return images;
}

}  // namespace interp
