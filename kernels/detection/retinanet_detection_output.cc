// retinanet_detection_output: the detections of all levels of a feature pyramid.
//
// Per level and image: BBoxes [N,M,4] are offsets from Anchors [M,4], Scores [N,M,C] of classes
// without background, ImInfo [N,3] height, width and scale of each image. The best nms_top_k scores
// of a level, of all anchors and classes, become boxes in pixels of the original image; suppression
// is by class over the levels together. In the last level every score above 0 counts. Out has rows
// [class + 1, score, box] by image and falling score, with their offsets.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box.h"
#include "kernels/detection/nms_list.h"
#include "kernels/util/all_present.h"

namespace interp {
namespace {

constexpr int kBoxes = 0;
constexpr int kScores = 1;
constexpr int kAnchors = 2;
constexpr int kImInfo = 3;
constexpr int kOut = 0;

struct RetinanetAttrs {
  float score_threshold, nms_threshold, nms_eta;
  int64_t nms_top_k, keep_top_k;
};

RetinanetAttrs ReadAttrs(AttrReader& reader) {
  const RetinanetAttrs attrs = {.score_threshold = reader.Float("score_threshold", 0),
                                .nms_threshold = reader.Float("nms_threshold", 0.3f),
                                .nms_eta = reader.Float("nms_eta", 1),
                                .nms_top_k = reader.Int("nms_top_k", -1),
                                .keep_top_k = reader.Int("keep_top_k", 100)};
  if (attrs.keep_top_k < 0) {
    reader.Fail(
        absl::StrCat("attribute 'keep_top_k' is ", attrs.keep_top_k, ", expected at least 0"));
  }
  return attrs;
}

absl::Status CheckShapes(KernelContext& ctx) {
  const auto boxes = ctx.inputs(kBoxes), scores = ctx.inputs(kScores);
  const auto anchors = ctx.inputs(kAnchors);
  if (boxes.empty() || boxes.size() != scores.size() || boxes.size() != anchors.size()) {
    return InvalidArgument("there are ", boxes.size(), " BBoxes, ", scores.size(), " Scores and ",
                           anchors.size(), " Anchors, expected as many of each");
  }
  INTERP_RETURN_IF_ERROR(CheckAllPresent(boxes, "BBoxes"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(scores, "Scores"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(anchors, "Anchors"));
  const Shape& info = ctx.input(kImInfo).shape;
  const Shape& first = scores[0]->shape;
  if (first.rank() != 3 || info.rank() != 2 || info[0] != first[0] || info[1] < 3) {
    return InvalidArgument("the first of 'Scores' has shape ", ToString(first), " and 'ImInfo' ",
                           ToString(info), ", expected [N,M,C] and [N,3]");
  }
  for (size_t level = 0; level < boxes.size(); ++level) {
    const Shape& box = boxes[level]->shape;
    if (anchors[level]->shape.rank() == 2) {
      const int64_t count = anchors[level]->shape[0];
      if (anchors[level]->shape == Shape{count, 4} && box == Shape{first[0], count, 4} &&
          scores[level]->shape == Shape{first[0], count, first[2]}) {
        continue;
      }
    }
    return InvalidArgument("level ", level, " has BBoxes ", ToString(box), ", Scores ",
                           ToString(scores[level]->shape), " and Anchors ",
                           ToString(anchors[level]->shape), ", expected [", first[0], ",M,4], [",
                           first[0], ",M,", first[2], "] and [M,4]");
  }
  return absl::OkStatus();
}

// Of ImInfo: the size of the original image, and how much larger the network's is.
template <typename T>
struct ImageInfo {
  T height, width, scale;
};

template <typename T>
struct Detection {
  std::array<T, 4> box;
  T score;
};

template <typename T>
std::array<T, 4> Decode(const T* offset, const T* anchor, const ImageInfo<T>& image) {
  const T width = anchor[2] - anchor[0] + 1;
  const T height = anchor[3] - anchor[1] + 1;
  const T x = offset[0] * width + (anchor[0] + width / 2);
  const T y = offset[1] * height + (anchor[1] + height / 2);
  const T half_width = std::exp(offset[2]) * width / 2;
  const T half_height = std::exp(offset[3]) * height / 2;
  const auto clip = [&](T value, T size) {
    return std::max(std::min(value / image.scale, size - 1), T{0});
  };
  return {clip(x - half_width, image.width), clip(y - half_height, image.height),
          clip(x + half_width - 1, image.width), clip(y + half_height - 1, image.height)};
}

// Adds the best of one level to the candidates by class.
template <typename T>
void AddLevel(const RetinanetAttrs& attrs, const KernelContext& ctx, int64_t level, int64_t n,
              std::vector<std::vector<Detection<T>>>& by_class) {
  const int64_t count = ctx.inputs(kAnchors)[level]->shape[0];
  const int64_t classes = std::ssize(by_class);
  const T* const scores = ctx.inputs(kScores)[level]->data<T>() + n * count * classes;
  const T* const offsets = ctx.inputs(kBoxes)[level]->data<T>() + n * count * 4;
  const T* const anchors = ctx.inputs(kAnchors)[level]->data<T>();
  const T* const info = ctx.input(kImInfo).data<T>() + n * ctx.input(kImInfo).shape[1];
  const ImageInfo<T> image = {std::round(info[0] / info[2]), std::round(info[1] / info[2]),
                              info[2]};
  const bool last = level + 1 == std::ssize(ctx.inputs(kAnchors));
  const T threshold = last ? T{0} : static_cast<T>(attrs.score_threshold);
  std::vector<ScoredIndex> list;
  for (int64_t i = 0; i < count * classes; ++i) {
    if (scores[i] > threshold) list.push_back({static_cast<float>(scores[i]), i});
  }
  SortAndCut(list, attrs.nms_top_k);
  for (const ScoredIndex& at : list) {
    const int64_t a = at.index / classes;
    by_class[at.index % classes].push_back(
        {Decode(offsets + 4 * a, anchors + 4 * a, image), scores[at.index]});
  }
}

// Appends the rows of one image; how many.
template <typename T>
int64_t AppendImage(const RetinanetAttrs& attrs,
                    const std::vector<std::vector<Detection<T>>>& by_class, std::vector<T>& rows) {
  const NmsRule<T> rule = {static_cast<T>(attrs.nms_threshold), static_cast<T>(attrs.nms_eta)};
  std::vector<ScoredIndex> best;
  std::vector<std::array<T, 6>> kept;
  for (size_t c = 0; c < by_class.size(); ++c) {
    const std::vector<Detection<T>>& candidates = by_class[c];
    std::vector<ScoredIndex> list;
    for (const Detection<T>& d : candidates) {
      list.push_back({static_cast<float>(d.score), std::ssize(list)});
    }
    SortAndCut(list, -1);
    const auto overlap = [&](int64_t i, int64_t k) {
      const T *const a = candidates[i].box.data(), *const b = candidates[k].box.data();
      return BoxOverlap(a[0], a[1], a[2], a[3], BoxArea(a, false), b[0], b[1], b[2], b[3],
                        BoxArea(b, false), T{1});
    };
    for (const ScoredIndex& at : SuppressList(list, rule, overlap)) {
      const Detection<T>& d = candidates[at.index];
      best.push_back({at.score, std::ssize(kept)});
      kept.push_back({static_cast<T>(c + 1), d.score, d.box[0], d.box[1], d.box[2], d.box[3]});
    }
  }
  SortAndCut(best, attrs.keep_top_k);
  for (const ScoredIndex& at : best) {
    rows.insert(rows.end(), kept[at.index].begin(), kept[at.index].end());
  }
  return std::ssize(best);
}

template <typename T>
absl::Status DetectionOutput(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckShapes(ctx));
  const auto& attrs = ctx.attrs<RetinanetAttrs>();
  const Shape& scores = ctx.inputs(kScores)[0]->shape;
  // Without any there may be 2^60 classes, or images.
  const auto all_scores = ctx.inputs(kScores);
  const bool any_scores = std::any_of(all_scores.begin(), all_scores.end(),
                                      [](const Tensor* level) { return level->numel() > 0; });
  std::vector<T> rows;
  std::vector<int64_t> offsets = {0};
  for (int64_t n = 0; n < scores[0]; ++n) {
    std::vector<std::vector<Detection<T>>> by_class(any_scores ? static_cast<size_t>(scores[2])
                                                               : 0);
    for (int64_t level = 0; level < std::ssize(ctx.inputs(kScores)); ++level) {
      AddLevel(attrs, ctx, level, n, by_class);
    }
    offsets.push_back(offsets.back() + AppendImage(attrs, by_class, rows));
  }
  Tensor& out = ctx.output(kOut);
  out.shape = {offsets.back(), 6};
  out.lod = {offsets};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(rows.begin(), rows.end(), out.mutable_data<T>());
  return absl::OkStatus();
}

DType ScoresType(const DTypeContext& ctx) { return ctx.input(kScores); }

INTERP_REGISTER_OP(OpDef{
    .type = "retinanet_detection_output",
    .inputs = {{"BBoxes", kVariadic}, {"Scores", kVariadic}, {"Anchors", kVariadic}, {"ImInfo"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RetinanetAttrs, ReadAttrs>,
    .kernel_dtype = ScoresType,
    .kernels = {{DType::kFloat32, DetectionOutput<float>},
                {DType::kFloat64, DetectionOutput<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
