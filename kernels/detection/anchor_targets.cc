// rpn_target_assign: what the anchors of a region proposal network are to learn. Per image, an
// anchor is foreground that overlaps a true box as much as any anchor does, or some box by
// rpn_positive_overlap or more, and background that overlaps none by rpn_negative_overlap. Of both
// a sample is taken. Anchors that stick out of the image by more than rpn_straddle_thresh do not
// count, nor do boxes of crowds.
//
//   Anchor [A,4], GtBoxes [G,4] with a LoD by image, IsCrowd [G,1], ImInfo [N,3]: height, width,
//   scale
//   -> LocationIndex [F], TargetBBox and BBoxInsideWeight [F,4]: the anchors that learn offsets
//      ScoreIndex [F+B], TargetLabel [F+B,1]: those that learn 1 (foreground) or 0
//
// An anchor that is both ends as background; in its place the first one in the sample gets offsets
// of weight 0. Anchors of image n have numbers from n A on.
//
// retinanet_target_assign: the same with all anchors and without samples. TargetLabel is the class
// of the box, GtLabels [G,1], and ForegroundNumber [N,1] counts LocationIndex and one more.
#include <limits>

#include "kernels/detection/region_targets.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kAnchor = 0;
constexpr int kGtBoxes = 1;
constexpr int kIsCrowd = 2;
constexpr int kImInfo = 3;
constexpr int kGtLabels = 4;  // retinanet_target_assign
constexpr int kLocationIndex = 0;
constexpr int kScoreIndex = 1;
constexpr int kTargetBox = 2;
constexpr int kTargetLabel = 3;
constexpr int kInsideWeight = 4;
constexpr int kForegroundNumber = 5;  // retinanet_target_assign

struct Attrs {
  int64_t batch = -1;   // of the sample, per image
  float fraction = -1;  // of foreground in it; not above 0: no sample
  float straddle = -1;  // below 0: all anchors count
  float positive, negative;
  bool random = false;
  bool has_classes = false;
};

Attrs ReadRpnAttrs(AttrReader& reader) {
  const Attrs attrs = {.batch = reader.Int("rpn_batch_size_per_im", 256),
                       .fraction = reader.Float("rpn_fg_fraction", 0.25F),
                       .straddle = reader.Float("rpn_straddle_thresh", 0),
                       .positive = reader.Float("rpn_positive_overlap", 0.7F),
                       .negative = reader.Float("rpn_negative_overlap", 0.3F),
                       .random = reader.Bool("use_random", true)};
  if (attrs.fraction > 1) {
    reader.Fail(absl::StrCat("attribute 'rpn_fg_fraction' is ", attrs.fraction,
                             ", expected no more than 1"));
  }
  return attrs;
}

Attrs ReadRetinanetAttrs(AttrReader& reader) {
  return {.positive = reader.Float("positive_overlap", 0.5F),
          .negative = reader.Float("negative_overlap", 0.4F),
          .has_classes = true};
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckBoxes(ctx, kAnchor, "Anchor"));
  INTERP_RETURN_IF_ERROR(CheckBoxes(ctx, kGtBoxes, "GtBoxes"));
  INTERP_ASSIGN_OR_RETURN(const Offsets images, OnlyLevelOffsets(ctx.input(kGtBoxes), "GtBoxes"));
  return CheckRows(ctx, kImInfo, "ImInfo", SequenceCount(images), 3);
}

// The anchors of one image that count, and the boxes that they can match.
template <typename T>
struct Image {
  std::vector<int64_t> anchors;
  std::vector<Box<T>> boxes;
  std::vector<int64_t> classes;  // of the boxes, where there are any
};

template <typename T>
void ListAnchors(const Tensor& anchors, float straddle, const T* info, Image<T>& image) {
  for (int64_t i = 0; i < anchors.shape[0]; ++i) {
    const T* const box = anchors.data<T>() + 4 * i;
    const bool inside = box[0] >= -straddle && box[1] >= -straddle && box[2] < info[1] + straddle &&
                        box[3] < info[0] + straddle;
    if (straddle < 0 || inside) image.anchors.push_back(i);
  }
}

// How the anchors of an image overlap its boxes.
template <typename T>
struct Overlaps {
  std::vector<T> best;            // by anchor
  std::vector<size_t> box;        // by anchor: the first box that it overlaps best
  std::vector<bool> best_of_box;  // by anchor: whether no other one overlaps some box more
};

template <typename T>
Overlaps<T> OverlapsOf(const Image<T>& image, const T* anchors) {
  const size_t count = image.anchors.size(), boxes = image.boxes.size();
  constexpr T kLeast = std::numeric_limits<T>::lowest();
  Overlaps<T> result = {std::vector<T>(count, kLeast), std::vector<size_t>(count),
                        std::vector<bool>(count)};
  std::vector<T> all(count * boxes), best_of_box(boxes, kLeast);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < boxes; ++j) {
      const T overlap = PixelOverlap(anchors + 4 * image.anchors[i], image.boxes[j].data());
      all[i * boxes + j] = overlap;
      best_of_box[j] = std::max(best_of_box[j], overlap);
      if (!(overlap > result.best[i])) continue;
      result.best[i] = overlap;
      result.box[i] = j;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < boxes && !result.best_of_box[i]; ++j) {
      result.best_of_box[i] = std::abs(all[i * boxes + j] - best_of_box[j]) < kOverlapTolerance;
    }
  }
  return result;
}

// What is chosen among the anchors of an image, by their places in Image::anchors.
struct Choice {
  std::vector<size_t> located;  // learn offsets
  size_t weightless = 0;        // the first of these have weight 0
  std::vector<size_t> foreground, background;
};

template <typename T>
Choice Choose(const Overlaps<T>& overlaps, const Attrs& attrs,
              const std::optional<RandomStream>& stream) {
  std::vector<size_t> high, low;
  for (size_t i = 0; i < overlaps.best.size(); ++i) {
    if (overlaps.best_of_box[i] || overlaps.best[i] >= attrs.positive) high.push_back(i);
    if (overlaps.best[i] < attrs.negative) low.push_back(i);
  }
  if (attrs.fraction > 0 && attrs.batch > 0) {
    KeepSample(high, static_cast<int64_t>(attrs.fraction * static_cast<float>(attrs.batch)), stream,
               /*part=*/0);
    KeepSample(low, attrs.batch - std::ssize(high), stream, /*part=*/1);
  }
  enum : uint8_t { kIgnored, kForeground, kBackground };
  std::vector<uint8_t> labels(overlaps.best.size(), kIgnored);
  for (const size_t i : high) labels[i] = kForeground;
  Choice choice;
  for (const size_t i : low) {
    if (labels[i] == kForeground) choice.located.push_back(high[0]);
    labels[i] = kBackground;
  }
  choice.weightless = choice.located.size();
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kForeground) choice.foreground.push_back(i);
    if (labels[i] == kBackground) choice.background.push_back(i);
  }
  choice.located.insert(choice.located.end(), choice.foreground.begin(), choice.foreground.end());
  return choice;
}

// The outputs, image after image.
template <typename T>
struct Targets {
  std::vector<int32_t> locations, scores, labels, counts;
  std::vector<T> offsets, weights;
  std::vector<int64_t> location_rows = {0}, score_rows = {0};
};

template <typename T>
void AddTargets(const Image<T>& image, const Overlaps<T>& overlaps, const Choice& choice,
                const T* anchors, int64_t first, Targets<T>& targets) {
  const auto number = [&](size_t i) { return static_cast<int32_t>(first + image.anchors[i]); };
  for (size_t k = 0; k < choice.located.size(); ++k) {
    const size_t i = choice.located[k];
    const Box<T> offsets =
        BoxOffsets(anchors + 4 * image.anchors[i], image.boxes[overlaps.box[i]].data());
    targets.locations.push_back(number(i));
    targets.offsets.insert(targets.offsets.end(), offsets.begin(), offsets.end());
    targets.weights.insert(targets.weights.end(), 4, k < choice.weightless ? T{0} : T{1});
  }
  for (const size_t i : choice.foreground) {
    targets.scores.push_back(number(i));
    const bool has_class = !image.classes.empty();
    targets.labels.push_back(has_class ? static_cast<int32_t>(image.classes[overlaps.box[i]]) : 1);
  }
  for (const size_t i : choice.background) {
    targets.scores.push_back(number(i));
    targets.labels.push_back(0);
  }
  targets.location_rows.push_back(std::ssize(targets.locations));
  targets.score_rows.push_back(std::ssize(targets.scores));
  targets.counts.push_back(static_cast<int32_t>(choice.located.size() + 1));
}

template <typename T>
absl::Status WriteTargets(KernelContext& ctx, const Targets<T>& targets) {
  const int64_t located = std::ssize(targets.locations), scored = std::ssize(targets.scores);
  const Lod locations = {targets.location_rows}, scores = {targets.score_rows};
  INTERP_RETURN_IF_ERROR(
      WriteList(ctx, kLocationIndex, Shape{located}, targets.locations, locations));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kScoreIndex, Shape{scored}, targets.scores, scores));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kTargetBox, Shape{located, 4}, targets.offsets, locations));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kTargetLabel, Shape{scored, 1}, targets.labels, scores));
  INTERP_RETURN_IF_ERROR(
      WriteList(ctx, kInsideWeight, Shape{located, 4}, targets.weights, locations));
  if (!ctx.attrs<Attrs>().has_classes) return absl::OkStatus();
  const int64_t images = std::ssize(targets.counts);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i <= images; ++i) rows.push_back(i);
  return WriteList(ctx, kForegroundNumber, Shape{images, 1}, targets.counts, {rows});
}

template <typename T>
absl::Status AssignTargets(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& anchors = ctx.input(kAnchor);
  const Tensor& boxes = ctx.input(kGtBoxes);
  const Tensor& info = ctx.input(kImInfo);
  INTERP_ASSIGN_OR_RETURN(const Offsets images, OnlyLevelOffsets(boxes, "GtBoxes"));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> crowd,
                          IntegersOf(ctx, kIsCrowd, "IsCrowd", boxes.shape[0]));
  std::vector<int64_t> classes;
  if (attrs.has_classes) {
    INTERP_ASSIGN_OR_RETURN(classes, IntegersOf(ctx, kGtLabels, "GtLabels", boxes.shape[0]));
  }
  Targets<T> targets;
  for (int64_t n = 0; n < SequenceCount(images); ++n) {
    const T* const size = info.data<T>() + n * info.shape[1];
    Image<T> image;
    ListAnchors(anchors, attrs.straddle, size, image);
    for (int64_t row = images[n]; row < images[n + 1]; ++row) {
      if (crowd[row] != 0) continue;
      image.boxes.push_back(Scaled(boxes.data<T>() + 4 * row, size[2]));
      if (attrs.has_classes) image.classes.push_back(classes[row]);
    }
    std::optional<RandomStream> stream;
    if (attrs.random) stream = ctx.random().Split(static_cast<uint64_t>(n));
    const Overlaps<T> overlaps = OverlapsOf(image, anchors.data<T>());
    AddTargets(image, overlaps, Choose(overlaps, attrs, stream), anchors.data<T>(),
               n * anchors.shape[0], targets);
  }
  return WriteTargets(ctx, targets);
}

OpDef TargetsDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"Anchor"}, {"GtBoxes"}, {"IsCrowd", kAnyDType}, {"ImInfo"}},
      .outputs = {{"LocationIndex"},
                  {"ScoreIndex"},
                  {"TargetBBox"},
                  {"TargetLabel"},
                  {"BBoxInsideWeight", kOptional}},
      .infer_dtype =
          [](DTypeContext& ctx) {
            for (const int slot : {kLocationIndex, kScoreIndex, kTargetLabel}) {
              ctx.Set(slot, DType::kInt32);
            }
          },
      .infer = Infer,
      .kernels = {{DType::kFloat32, AssignTargets<float>},
                  {DType::kFloat64, AssignTargets<double>}},
      .dynamic_outputs = true,
      .gradient = {.none = true},
  };
}

OpDef RpnDef() {
  OpDef def = TargetsDef("rpn_target_assign");
  def.parse = ParseAttrs<Attrs, ReadRpnAttrs>;
  def.random = true;
  return def;
}

OpDef RetinanetDef() {
  OpDef def = TargetsDef("retinanet_target_assign");
  def.parse = ParseAttrs<Attrs, ReadRetinanetAttrs>;
  def.inputs.push_back({"GtLabels", kAnyDType});
  def.outputs.push_back({"ForegroundNumber"});
  def.infer_dtype = [](DTypeContext& ctx) {
    for (const int slot : {kLocationIndex, kScoreIndex, kTargetLabel, kForegroundNumber}) {
      ctx.Set(slot, DType::kInt32);
    }
  };
  return def;
}

INTERP_REGISTER_OP(RpnDef());
INTERP_REGISTER_OP(RetinanetDef());

}  // namespace
}  // namespace interp
