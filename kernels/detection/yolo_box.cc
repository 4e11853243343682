// yolo_box: boxes and class scores from one output map of a YOLO network.
//
// X [N, A*(5+C), H, W] holds, per anchor, x, y, width, height, confidence and C class planes; with
// iou_aware, A planes of predicted overlap come before all others and sharpen the confidence. A
// cell whose confidence is below the threshold gives a box and scores of zero. Boxes [N, A*H*W, 4]
// in pixels of the original image, Scores [N, A*H*W, C].
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box_attrs.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kImgSize = 1;
constexpr int kBoxes = 0;
constexpr int kScores = 1;

constexpr int64_t kGrain = 1024;  // cells per task; most need one exponential
constexpr int64_t kBlock = 16;    // cells at a time

YoloAttrs ReadAttrs(AttrReader& reader) {
  YoloAttrs attrs = {.anchors = reader.Ints("anchors"),
                     .class_num = reader.Int("class_num", 1),
                     .downsample_ratio = reader.Int("downsample_ratio", 32),
                     .conf_thresh = reader.Float("conf_thresh", 0.01f),
                     .scale_x_y = reader.Float("scale_x_y", 1),
                     .iou_aware_factor = reader.Float("iou_aware_factor", 0.5),
                     .clip_bbox = reader.Bool("clip_bbox", true),
                     .iou_aware = reader.Bool("iou_aware", false)};
  if (attrs.anchors.empty() || attrs.anchors.size() % 2 != 0) {
    reader.Fail(
        absl::StrCat("attribute 'anchors' has ", attrs.anchors.size(), " values, expected pairs"));
  }
  if (attrs.class_num <= 0) {
    reader.Fail(
        absl::StrCat("attribute 'class_num' is ", attrs.class_num, ", expected more than 0"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const YoloAttrs& attrs = ctx.attrs<YoloAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const Tensor& size = ctx.input(kImgSize);
  if (x.rank() != 4 || x[1] != attrs.channels()) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [N,", attrs.channels(),
                           ",H,W]");
  }
  if (size.shape.rank() != 2 || size.shape[0] != x[0] || size.shape[1] != 2) {
    return InvalidArgument("input 'ImgSize' has shape ", ToString(size.shape), ", expected [", x[0],
                           ",2]");
  }
  if (size.dtype != DType::kInt32) {
    return InvalidArgument("input 'ImgSize' is ", Name(size.dtype), ", expected int32");
  }
  const int64_t num_boxes = attrs.num_anchors() * x[2] * x[3];
  ctx.SetShape(kBoxes, {x[0], num_boxes, 4});
  ctx.SetShape(kScores, {x[0], num_boxes, attrs.class_num});
  return absl::OkStatus();
}

// As Paddle rounds it, for what is compared with the threshold.
template <typename T>
T ExactSigmoid(T x) {
  return static_cast<T>(1.0 / (1.0 + std::exp(-x)));
}

// The planes of one anchor in one image, and where its boxes go.
template <typename T>
struct AnchorMap {
  const T* planes;   // x, y, width, height, confidence, classes
  const T* overlap;  // predicted overlap, null without iou_aware
  T* boxes;
  T* scores;
  T anchor_width, anchor_height;
  T image_width, image_height;
};

template <typename T>
AnchorMap<T> MapOf(KernelContext& ctx, const YoloAttrs& attrs, int64_t image, int64_t anchor) {
  const Tensor& x = ctx.input(kX);
  const int64_t cells = x.shape[2] * x.shape[3];
  const int64_t first_box = (image * attrs.num_anchors() + anchor) * cells;
  const int32_t* size = ctx.input(kImgSize).data<int32_t>() + image * 2;
  const T* planes = x.data<T>() + image * attrs.channels() * cells;
  const T* overlap = attrs.iou_aware ? planes + anchor * cells : nullptr;
  if (attrs.iou_aware) planes += attrs.num_anchors() * cells;
  return {.planes = planes + anchor * (attrs.class_num + 5) * cells,
          .overlap = overlap,
          .boxes = ctx.output(kBoxes).mutable_data<T>() + first_box * 4,
          .scores = ctx.output(kScores).mutable_data<T>() + first_box * attrs.class_num,
          .anchor_width = static_cast<T>(attrs.anchors[anchor * 2]),
          .anchor_height = static_cast<T>(attrs.anchors[anchor * 2 + 1]),
          .image_width = static_cast<T>(size[1]),
          .image_height = static_cast<T>(size[0])};
}

template <typename T>
T Confidence(const YoloAttrs& attrs, const AnchorMap<T>& map, int64_t cells, int64_t cell) {
  const T confidence = ExactSigmoid(map.planes[4 * cells + cell]);
  if (map.overlap == nullptr) return confidence;
  return std::pow(confidence, static_cast<T>(1. - attrs.iou_aware_factor)) *
         std::pow(ExactSigmoid(map.overlap[cell]), static_cast<T>(attrs.iou_aware_factor));
}

template <typename T>
void WriteBox(const YoloAttrs& attrs, const AnchorMap<T>& map, int64_t height, int64_t width,
              int64_t cell, T* box) {
  const int64_t cells = height * width;
  const T* p = map.planes + cell;
  const T scale = attrs.scale_x_y;
  const T bias = -0.5f * (attrs.scale_x_y - 1.f);
  const T column = static_cast<T>(cell % width), row = static_cast<T>(cell / width);
  const T x =
      (column + ExactSigmoid(p[0]) * scale + bias) * map.image_width / static_cast<T>(width);
  const T y =
      (row + ExactSigmoid(p[cells]) * scale + bias) * map.image_height / static_cast<T>(height);
  const T box_width = std::exp(p[2 * cells]) * map.anchor_width * map.image_width /
                      static_cast<T>(attrs.downsample_ratio * width);
  const T box_height = std::exp(p[3 * cells]) * map.anchor_height * map.image_height /
                       static_cast<T>(attrs.downsample_ratio * height);
  box[0] = x - box_width / 2;
  box[1] = y - box_height / 2;
  box[2] = x + box_width / 2;
  box[3] = y + box_height / 2;
  if (!attrs.clip_bbox) return;
  const T last_x = map.image_width - 1, last_y = map.image_height - 1;
  box[0] = box[0] > 0 ? box[0] : T{0};
  box[1] = box[1] > 0 ? box[1] : T{0};
  box[2] = box[2] < last_x ? box[2] : last_x;
  box[3] = box[3] < last_y ? box[3] : last_y;
}

// `count` cells from `first` on, at most kBlock. Scores are made class by class, where neighbouring
// cells are neighbours in memory.
template <typename T>
void WriteBlock(const YoloAttrs& attrs, const AnchorMap<T>& map, int64_t height, int64_t width,
                int64_t first, int64_t count) {
  const int64_t cells = height * width;
  T confidence[kBlock];  // 0 below the threshold
  bool any = false;
  for (int64_t i = 0; i < count; ++i) {
    T* box = map.boxes + (first + i) * 4;
    confidence[i] = Confidence(attrs, map, cells, first + i);
    if (confidence[i] < static_cast<T>(attrs.conf_thresh)) {
      confidence[i] = 0;
      std::fill_n(box, 4, T{0});
    } else {
      any = true;
      WriteBox(attrs, map, height, width, first + i, box);
    }
  }
  T* scores = map.scores + first * attrs.class_num;
  if (!any) {
    std::fill_n(scores, count * attrs.class_num, T{0});
    return;
  }
  for (int64_t c = 0; c < attrs.class_num; ++c) {
    const T* plane = map.planes + (5 + c) * cells + first;
    T score[kBlock];
    for (int64_t i = 0; i < count; ++i) {
      const T product = confidence[i] * Sigmoid(plane[i]);
      score[i] = confidence[i] == 0 ? T{0} : product;  // where the product is NaN, too
    }
    for (int64_t i = 0; i < count; ++i) scores[i * attrs.class_num + c] = score[i];
  }
}

template <typename T>
absl::Status YoloBox(KernelContext& ctx) {
  const YoloAttrs& attrs = ctx.attrs<YoloAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const int64_t height = x[2], width = x[3], cells = height * width;
  const auto write = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t plane = begin / cells, cell = begin % cells;
      const int64_t count = std::min({kBlock, cells - cell, end - begin});
      const AnchorMap<T> map =
          MapOf<T>(ctx, attrs, plane / attrs.num_anchors(), plane % attrs.num_anchors());
      WriteBlock(attrs, map, height, width, cell, count);
      begin += count;
    }
  };
  ParallelFor(ctx.num_threads(), x[0] * attrs.num_anchors() * cells, kGrain, write);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "yolo_box",
    .inputs = {{"X"}, {"ImgSize", kAnyDType}},
    .outputs = {{"Boxes"}, {"Scores"}},
    .parse = ParseAttrs<YoloAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, YoloBox<float>}, {DType::kFloat64, YoloBox<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
