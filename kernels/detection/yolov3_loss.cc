// yolov3_loss: how far the output map of a YOLO network is from the boxes GTBox, which are centres
// and sizes relative to the image; boxes without area are padding.
//
// Each box belongs to the anchor whose size fits best and to the cell of its centre. Where that
// anchor is one of anchor_mask, the prediction there is to have its location, its class, and an
// objectness of 1, weighted by GTScore. All other predictions are to have an objectness of 0, but
// for those that overlap some box by more than ignore_thresh. ObjectnessMask is the weight, 0 or
// -1; GTMatchMask the position in anchor_mask, or -1.
#include "kernels/detection/yolov3_loss.h"

#include <algorithm>

#include "kernels/util/check_shape.h"

namespace interp {
namespace {

constexpr int kLoss = 0;
constexpr int kObjectnessMask = 1;
constexpr int kMatchMask = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckYoloInputs(ctx));
  const Shape& x = ctx.input(kYoloX).shape;
  ctx.SetShape(kLoss, {x[0]});
  ctx.SetShape(kObjectnessMask, {x[0], ctx.attrs<YoloLossAttrs>().num_masks(), x[2], x[3]});
  ctx.SetShape(kMatchMask, {x[0], ctx.input(kYoloBox).shape[1]});
  return absl::OkStatus();
}

template <typename T>
T CrossEntropy(T x, T label) {
  return std::max(x, T{0}) - x * label + std::log(T{1} + std::exp(-std::abs(x)));
}

// Length of the overlap of two intervals given by centre and size.
template <typename T>
T Overlap(T centre, T size, T other_centre, T other_size) {
  const T left = std::max(centre - size / 2, other_centre - other_size / 2);
  const T right = std::min(centre + size / 2, other_centre + other_size / 2);
  return right - left;
}

template <typename T>
T Iou(const YoloBox<T>& a, const YoloBox<T>& b) {
  const T w = Overlap(a.x, a.w, b.x, b.w);
  const T h = Overlap(a.y, a.h, b.y, b.h);
  const T inter = w < 0 || h < 0 ? T{0} : w * h;
  return inter / (a.w * a.h + b.w * b.h - inter);
}

// One image.
template <typename T>
struct Problem {
  const YoloLossAttrs& attrs;
  YoloMap map;
  const T* x;  // of all images
  int64_t image;
  std::vector<YoloBox<T>> boxes;  // w = 0: padding
  const int32_t* labels;
  const T* scores;  // null: 1
};

template <typename T>
YoloBox<T> Predict(const Problem<T>& p, int64_t mask, int64_t cell) {
  const T* const at = p.x + p.map.at(p.image, mask, cell);
  const T grid = static_cast<T>(p.map.grid);
  const T size = static_cast<T>(p.attrs.downsample_ratio * p.map.grid);
  const T scale = p.attrs.scale_x_y;
  const T bias = static_cast<T>(-0.5f * (p.attrs.scale_x_y - 1));
  const int64_t anchor = 2 * p.attrs.mask[mask];
  const auto sigmoid = [](T v) { return T{1} / (T{1} + std::exp(-v)); };
  return {(static_cast<T>(cell % p.map.grid) + sigmoid(at[0]) * scale + bias) / grid,
          (static_cast<T>(cell / p.map.grid) + sigmoid(at[p.map.cells]) * scale + bias) / grid,
          std::exp(at[2 * p.map.cells]) * static_cast<T>(p.attrs.anchors[anchor]) / size,
          std::exp(at[3 * p.map.cells]) * static_cast<T>(p.attrs.anchors[anchor + 1]) / size};
}

template <typename T>
void IgnoreOverlapping(const Problem<T>& p, T* objectness) {
  for (int64_t m = 0; m < p.map.masks; ++m) {
    for (int64_t cell = 0; cell < p.map.cells; ++cell) {
      const YoloBox<T> box = Predict(p, m, cell);
      T best = 0;
      for (const YoloBox<T>& gt : p.boxes) {
        if (gt.w > 0) best = std::max(best, Iou(box, gt));
      }
      objectness[p.map.mask_at(0, m, cell)] = best > p.attrs.ignore_thresh ? T{-1} : T{0};
    }
  }
}

// The anchor whose size overlaps that of the box most.
template <typename T>
int64_t BestAnchor(const YoloLossAttrs& attrs, const YoloMap& map, const YoloBox<T>& gt) {
  const T size = static_cast<T>(attrs.downsample_ratio * map.grid);
  T best = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < attrs.num_anchors(); ++i) {
    const YoloBox<T> anchor = {0, 0, static_cast<T>(attrs.anchors[2 * i]) / size,
                               static_cast<T>(attrs.anchors[2 * i + 1]) / size};
    const T iou = Iou(anchor, YoloBox<T>{0, 0, gt.w, gt.h});
    if (!(iou > best)) continue;
    best = iou;
    at = i;
  }
  return at;
}

// The loss of location and classes of box b; marks its prediction.
template <typename T>
absl::StatusOr<T> MatchBox(const Problem<T>& p, int64_t b, T* objectness, int32_t& match) {
  const YoloBox<T>& gt = p.boxes[b];
  match = -1;
  if (!(gt.w > 0)) return T{0};
  INTERP_ASSIGN_OR_RETURN(const int64_t cell, CellOf(p.map, gt));
  const int64_t anchor = BestAnchor(p.attrs, p.map, gt);
  const auto mask = std::find(p.attrs.mask.begin(), p.attrs.mask.end(), anchor);
  if (mask == p.attrs.mask.end()) return T{0};
  match = static_cast<int32_t>(mask - p.attrs.mask.begin());
  const T score = p.scores == nullptr ? T{1} : p.scores[b];
  const YoloTarget<T> target = MakeYoloTarget(p.attrs, p.map, gt, anchor, cell, score);
  const T* const at = p.x + p.map.at(p.image, match, cell);
  T loss = CrossEntropy(at[0], target.x) * target.scale;
  loss += CrossEntropy(at[p.map.cells], target.y) * target.scale;
  loss += std::abs(target.w - at[2 * p.map.cells]) * target.scale;
  loss += std::abs(target.h - at[3 * p.map.cells]) * target.scale;
  objectness[p.map.mask_at(0, match, cell)] = score;
  for (int64_t c = 0; c < p.map.classes; ++c) {
    const double label = c == p.labels[b] ? p.attrs.positive() : p.attrs.negative();
    loss += CrossEntropy(at[(5 + c) * p.map.cells], static_cast<T>(label)) * score;
  }
  return loss;
}

template <typename T>
T ObjectnessLoss(const Problem<T>& p, const T* objectness) {
  T loss = 0;
  for (int64_t m = 0; m < p.map.masks; ++m) {
    const T* const at = p.x + p.map.at(p.image, m, 4 * p.map.cells);
    for (int64_t cell = 0; cell < p.map.cells; ++cell) {
      const T weight = objectness[p.map.mask_at(0, m, cell)];
      if (weight > static_cast<T>(1e-5)) {
        loss += CrossEntropy(at[cell], T{1}) * weight;
      } else if (weight > T{-0.5}) {
        loss += CrossEntropy(at[cell], T{0});
      }
    }
  }
  return loss;
}

template <typename T>
std::vector<YoloBox<T>> BoxesOf(const T* values, int64_t count) {
  const T least = static_cast<T>(1e-6);
  std::vector<YoloBox<T>> boxes;
  for (int64_t i = 0; i < count; ++i, values += 4) {
    const bool padding = values[2] < least || values[3] < least;
    boxes.push_back({values[0], values[1], padding ? T{0} : values[2], values[3]});
  }
  return boxes;
}

template <typename T>
absl::Status YoloLoss(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<YoloLossAttrs>();
  const Tensor& x = ctx.input(kYoloX);
  const int64_t num_boxes = ctx.input(kYoloBox).shape[1];
  const YoloMap map(attrs, x.shape);
  T* const loss = ctx.output(kLoss).mutable_data<T>();
  T* objectness = ctx.output(kObjectnessMask).mutable_data<T>();
  int32_t* match = ctx.output(kMatchMask).mutable_data<int32_t>();
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    const Tensor* const score = ctx.optional_input(kYoloScore);
    const Problem<T> p = {attrs,
                          map,
                          x.data<T>(),
                          n,
                          BoxesOf(ctx.input(kYoloBox).data<T>() + 4 * n * num_boxes, num_boxes),
                          ctx.input(kYoloLabel).data<int32_t>() + n * num_boxes,
                          score == nullptr ? nullptr : score->data<T>() + n * num_boxes};
    IgnoreOverlapping(p, objectness);
    loss[n] = 0;
    for (int64_t b = 0; b < num_boxes; ++b) {
      INTERP_ASSIGN_OR_RETURN(const T part, MatchBox(p, b, objectness, *match++));
      loss[n] += part;
    }
    loss[n] += ObjectnessLoss(p, objectness);
    objectness += map.masks * map.cells;
  }
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kMatchMask, DType::kInt32); }

INTERP_REGISTER_OP(OpDef{
    .type = "yolov3_loss",
    .inputs = {{"X"}, {"GTBox"}, {"GTLabel", kAnyDType}, {"GTScore", kOptional}},
    .outputs = {{"Loss"}, {"ObjectnessMask"}, {"GTMatchMask"}},
    .parse = ParseAttrs<YoloLossAttrs, ReadYoloLossAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, YoloLoss<float>}, {DType::kFloat64, YoloLoss<double>}},
    .gradient = {.inputs = {"X", "GTBox", "GTLabel", "GTScore", "Loss@GRAD", "ObjectnessMask",
                            "GTMatchMask"},
                 .outputs = {"X@GRAD"}},
});

}  // namespace

YoloLossAttrs ReadYoloLossAttrs(AttrReader& reader) {
  YoloLossAttrs attrs = {.anchors = reader.Ints("anchors"),
                         .mask = reader.Ints("anchor_mask"),
                         .class_num = reader.Int("class_num", 1),
                         .downsample_ratio = reader.Int("downsample_ratio", 32),
                         .ignore_thresh = reader.Float("ignore_thresh", 0.7f),
                         .scale_x_y = reader.Float("scale_x_y", 1),
                         .use_label_smooth = reader.Bool("use_label_smooth", true)};
  if (attrs.anchors.empty() || attrs.anchors.size() % 2 != 0) {
    reader.Fail(
        absl::StrCat("attribute 'anchors' has ", attrs.anchors.size(), " values, expected pairs"));
  }
  if (attrs.mask.empty()) reader.Fail("attribute 'anchor_mask' has no values");
  for (const int64_t anchor : attrs.mask) {
    if (anchor >= 0 && anchor < attrs.num_anchors()) continue;
    reader.Fail(absl::StrCat("attribute 'anchor_mask' has the value ", anchor, ", expected 0 to ",
                             attrs.num_anchors() - 1));
  }
  if (attrs.class_num <= 0 || attrs.downsample_ratio <= 0) {
    reader.Fail(absl::StrCat("attributes 'class_num' and 'downsample_ratio' are ", attrs.class_num,
                             " and ", attrs.downsample_ratio, ", expected more than 0"));
  }
  return attrs;
}

absl::Status CheckYoloInputs(const InferContext& ctx) {
  const auto& attrs = ctx.attrs<YoloLossAttrs>();
  const Shape& x = ctx.input(kYoloX).shape;
  const Shape& box = ctx.input(kYoloBox).shape;
  const Tensor& label = ctx.input(kYoloLabel);
  const Tensor* const score = ctx.optional_input(kYoloScore);
  if (x.rank() != 4 || x[1] != attrs.channels() || x[2] != x[3]) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [N,", attrs.channels(),
                           ",H,H]");
  }
  if (box.rank() != 3 || box[0] != x[0] || box[2] != 4) {
    return InvalidArgument("input 'GTBox' has shape ", ToString(box), ", expected [", x[0],
                           ",B,4]");
  }
  const Shape per_box = {box[0], box[1]};
  if (label.dtype != DType::kInt32 || !(label.shape == per_box)) {
    return InvalidArgument("input 'GTLabel' is ", DescribeType(label), ", expected int32",
                           ToString(per_box));
  }
  return score == nullptr ? absl::OkStatus() : CheckInputShape(*score, "GTScore", per_box);
}

}  // namespace interp
