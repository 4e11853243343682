// generate_mask_labels: what the mask branch of Mask R-CNN is to learn. Of each image the regions
// with a label above 0 are taken, each with the object whose polygons' box overlaps it most, and
// the mask is what those polygons cover of the region, divided into resolution x resolution cells.
// Objects that are crowds or of class 0 have no mask. An image without such a region gives its
// first region of label 0 with nothing to learn. Images without a region give nothing.
//
//   ImInfo [N,3]: height, width, scale; GtClasses, IsCrowd [G,1]; GtSegms [P,2], points with a LoD
//   of images, objects and polygons; Rois [R,4], LabelsInt32 [R,1] with LoDs by image
//   -> MaskRois [K,4], RoiHasMaskInt32 [K,1]: which of the image's regions each is
//      MaskInt32 [K, num_classes * resolution^2]: 0 or 1 in the columns of its label, -1 elsewhere
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/detection/polygon_mask.h"
#include "kernels/detection/region_targets.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kImInfo = 0;
constexpr int kGtClasses = 1;
constexpr int kIsCrowd = 2;
constexpr int kGtSegms = 3;
constexpr int kRois = 4;
constexpr int kLabels = 5;
constexpr int kMaskRois = 0;
constexpr int kRoiHasMask = 1;
constexpr int kMasks = 2;

constexpr int64_t kMostResolution = 1024;
constexpr int64_t kMostCells = int64_t{1} << 28;  // of one region, in all classes
constexpr int kSegmLevels = 3;

struct Attrs {
  int64_t num_classes, resolution;

  int64_t cells() const { return resolution * resolution; }
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {.num_classes = reader.Int("num_classes", 0),
                       .resolution = reader.Int("resolution", 0)};
  const bool fits = attrs.num_classes > 0 && attrs.resolution > 0 &&
                    attrs.resolution <= kMostResolution &&
                    attrs.num_classes <= kMostCells / attrs.cells();
  if (!fits) {
    reader.Fail(absl::StrCat("attributes 'num_classes' and 'resolution' are ", attrs.num_classes,
                             " and ", attrs.resolution, ", expected 1 or more, a resolution of ",
                             kMostResolution, " or less and ", kMostCells, " cells in all"));
  }
  return attrs;
}

// Points of polygons of objects of images.
struct Segments {
  Offsets objects, polygons, points;
};

absl::StatusOr<Segments> SegmentsOf(const Tensor& segms) {
  if (segms.shape.rank() != 2 || segms.shape[1] != 2 || segms.lod.size() != kSegmLevels) {
    return InvalidArgument("input 'GtSegms' has shape ", ToString(segms.shape), " and ",
                           segms.lod.size(), " levels of LoD, expected points [P,2] and 3 levels");
  }
  const Segments result = {segms.lod[0], segms.lod[1], segms.lod[2]};
  INTERP_RETURN_IF_ERROR(CheckOffsets(result.points, segms.shape[0], "GtSegms"));
  INTERP_RETURN_IF_ERROR(CheckOffsets(result.polygons, SequenceCount(result.points), "GtSegms"));
  INTERP_RETURN_IF_ERROR(CheckOffsets(result.objects, SequenceCount(result.polygons), "GtSegms"));
  return result;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckBoxes(ctx, kRois, "Rois"));
  INTERP_ASSIGN_OR_RETURN(const Offsets images, OnlyLevelOffsets(ctx.input(kRois), "Rois"));
  INTERP_ASSIGN_OR_RETURN(const Segments segments, SegmentsOf(ctx.input(kGtSegms)));
  if (SequenceCount(segments.objects) != SequenceCount(images)) {
    return InvalidArgument("inputs 'Rois' and 'GtSegms' have ", SequenceCount(images), " and ",
                           SequenceCount(segments.objects),
                           " sequences, expected one for each image");
  }
  return CheckRows(ctx, kImInfo, "ImInfo", SequenceCount(images), 3);
}

// An object to learn: its polygons from `first` to before `last`, and the box around them.
struct Object {
  int64_t first, last;
  Box<float> box;
};

// The right and lower ends of boxes are 0 at least.
absl::StatusOr<Object> MakeObject(const Segments& segments, const float* points, int64_t object) {
  constexpr float kFar = std::numeric_limits<float>::max();
  Object result = {segments.polygons[object], segments.polygons[object + 1], {kFar, kFar, 0, 0}};
  for (int64_t polygon = result.first; polygon < result.last; ++polygon) {
    if (segments.points[polygon] == segments.points[polygon + 1]) {
      return InvalidArgument("polygon ", polygon, " of 'GtSegms' has no points");
    }
    for (int64_t i = segments.points[polygon]; i < segments.points[polygon + 1]; ++i) {
      for (int axis = 0; axis < 2; ++axis) {
        const float at = points[2 * i + axis];
        if (!std::isfinite(at)) {
          return InvalidArgument("'GtSegms' has the value ", at, ", expected finite ones");
        }
        result.box[axis] = std::min(result.box[axis], at);
        result.box[2 + axis] = std::max(result.box[2 + axis], at);
      }
    }
  }
  return result;
}

const Object& MostOverlapping(const std::vector<Object>& objects, const Box<float>& region) {
  const Object* best = &objects[0];
  float most = 0;
  for (const Object& object : objects) {
    const float overlap = PixelOverlap(region.data(), object.box.data());
    if (overlap > most) {
      most = overlap;
      best = &object;
    }
  }
  return *best;
}

// What the object covers of the region.
void Cover(const Segments& segments, const float* points, const Object& object,
           const Box<float>& region, int64_t resolution, absl::Span<uint8_t> mask) {
  const auto cells = static_cast<float>(resolution);
  const Box<float> size = {std::max(region[2] - region[0], 1.0F),
                           std::max(region[3] - region[1], 1.0F)};
  std::vector<float> scaled;
  for (int64_t polygon = object.first; polygon < object.last; ++polygon) {
    scaled.clear();
    for (int64_t i = 2 * segments.points[polygon]; i < 2 * segments.points[polygon + 1]; ++i) {
      scaled.push_back((points[i] - region[i % 2]) * cells / size[i % 2]);
    }
    CoverPolygon(scaled, resolution, mask);
  }
}

// Regions with masks, image after image.
struct Masks {
  std::vector<float> rois;
  std::vector<int32_t> regions;
  std::vector<int64_t> labels;
  std::vector<uint8_t> cells;  // of the label alone
  std::vector<int64_t> rows = {0};

  // Returns the cells, none of them covered.
  absl::Span<uint8_t> Add(const Box<float>& roi, int64_t region, int64_t label, int64_t count) {
    rois.insert(rois.end(), roi.begin(), roi.end());
    regions.push_back(static_cast<int32_t>(region));
    labels.push_back(label);
    cells.resize(cells.size() + static_cast<size_t>(count));
    return absl::MakeSpan(cells).last(static_cast<size_t>(count));
  }
};

// The regions of one image.
struct Regions {
  const float* rois;
  const int64_t* labels;
  int64_t count;
  float scale;

  // In the image that the polygons are of.
  Box<float> At(int64_t i) const {
    Box<float> box;
    for (int k = 0; k < 4; ++k) box[k] = rois[4 * i + k] / scale;
    return box;
  }
};

absl::Status AddImage(const Regions& regions, const std::vector<Object>& objects,
                      const Segments& segments, const float* points, const Attrs& attrs,
                      Masks& out) {
  const auto add = [&](const Box<float>& box, int64_t i) {
    return out.Add(Scaled(box.data(), regions.scale), i, regions.labels[i], attrs.cells());
  };
  int64_t background = -1;
  bool found = false;
  for (int64_t i = 0; i < regions.count; ++i) {
    const int64_t label = regions.labels[i];
    if (label == 0 && background < 0) background = i;
    if (label <= 0) continue;
    if (label >= attrs.num_classes || objects.empty()) {
      return InvalidArgument("'LabelsInt32' has the value ", label, " in an image with ",
                             objects.size(), " objects, expected less than 'num_classes', ",
                             attrs.num_classes, ", and an object that is no crowd");
    }
    found = true;
    const Box<float> box = regions.At(i);
    Cover(segments, points, MostOverlapping(objects, box), box, attrs.resolution, add(box, i));
  }
  if (found || regions.count == 0) return absl::OkStatus();
  if (background < 0) return InvalidArgument("'LabelsInt32' has an image without 0 and above");
  add(regions.At(background), background);
  return absl::OkStatus();
}

// The columns of other labels are -1, and so are all without something to learn.
absl::Status WriteMasks(KernelContext& ctx, const Masks& masks) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const int64_t cells = attrs.cells(), row = attrs.num_classes * cells;
  Tensor& out = ctx.output(kMasks);
  out.shape = {std::ssize(masks.labels), row};
  out.lod = {masks.rows};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  int32_t* const to = out.mutable_data<int32_t>();
  std::fill(to, to + out.numel(), -1);
  for (int64_t i = 0; i < std::ssize(masks.labels); ++i) {
    if (masks.labels[i] <= 0) continue;
    std::copy_n(masks.cells.data() + i * cells, cells, to + i * row + masks.labels[i] * cells);
  }
  return absl::OkStatus();
}

absl::Status LabelMasks(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& rois = ctx.input(kRois);
  const Tensor& info = ctx.input(kImInfo);
  const float* const points = ctx.input(kGtSegms).data<float>();
  INTERP_ASSIGN_OR_RETURN(const Offsets images, OnlyLevelOffsets(rois, "Rois"));
  INTERP_ASSIGN_OR_RETURN(const Segments segments, SegmentsOf(ctx.input(kGtSegms)));
  const int64_t num_objects = SequenceCount(segments.polygons);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> classes,
                          IntegersOf(ctx, kGtClasses, "GtClasses", num_objects));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> crowd,
                          IntegersOf(ctx, kIsCrowd, "IsCrowd", num_objects));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> labels,
                          IntegersOf(ctx, kLabels, "LabelsInt32", rois.shape[0]));
  Masks out;
  for (int64_t n = 0; n < SequenceCount(images); ++n) {
    std::vector<Object> objects;
    for (int64_t i = segments.objects[n]; i < segments.objects[n + 1]; ++i) {
      if (classes[i] <= 0 || crowd[i] != 0) continue;
      INTERP_ASSIGN_OR_RETURN(Object object, MakeObject(segments, points, i));
      objects.push_back(object);
    }
    const Regions regions = {rois.data<float>() + 4 * images[n], labels.data() + images[n],
                             images[n + 1] - images[n], info.data<float>()[n * info.shape[1] + 2]};
    INTERP_RETURN_IF_ERROR(AddImage(regions, objects, segments, points, attrs, out));
    out.rows.push_back(std::ssize(out.regions));
  }
  const int64_t count = out.rows.back();
  const Lod lod = {out.rows};
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kMaskRois, Shape{count, 4}, out.rois, lod));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kRoiHasMask, Shape{count, 1}, out.regions, lod));
  return WriteMasks(ctx, out);
}

INTERP_REGISTER_OP(OpDef{
    .type = "generate_mask_labels",
    .inputs = {{"ImInfo"},
               {"GtClasses", kAnyDType},
               {"IsCrowd", kAnyDType},
               {"GtSegms"},
               {"Rois"},
               {"LabelsInt32", kAnyDType}},
    .outputs = {{"MaskRois"}, {"RoiHasMaskInt32"}, {"MaskInt32"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kRoiHasMask, DType::kInt32);
          ctx.Set(kMasks, DType::kInt32);
        },
    .infer = Infer,
    .kernels = {{DType::kFloat32, LabelMasks}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
