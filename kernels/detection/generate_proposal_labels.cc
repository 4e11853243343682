// generate_proposal_labels: what a detector is to learn on the regions that were proposed. Per
// image, the true boxes and the regions are candidates: foreground from an overlap of fg_thresh
// with a true box on, background from bg_thresh_lo to below bg_thresh_hi. Of both a sample is
// taken, unless is_cascade_rcnn, which leaves out regions that are true boxes (MaxOverlap 1) or
// empty. Crowds are no candidates. Images without a region give nothing.
//
//   RpnRois [R,4] and GtBoxes [G,4] with LoDs by image, GtClasses, IsCrowd [G,1], ImInfo [N,3]:
//   height, width, scale; MaxOverlap [R]
//   -> Rois [P,4], foreground first, LabelsInt32 [P,1], MaxOverlapWithGT [P]
//      BboxTargets, BboxInsideWeights, BboxOutsideWeights [P, 4 class_nums]: offsets to the true
//      box and weights of 1 in the four columns of its class, or of class 1 if is_cls_agnostic
#include "kernels/detection/region_targets.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kRpnRois = 0;
constexpr int kGtClasses = 1;
constexpr int kIsCrowd = 2;
constexpr int kGtBoxes = 3;
constexpr int kImInfo = 4;
constexpr int kMaxOverlap = 5;
constexpr int kRois = 0;
constexpr int kLabels = 1;
constexpr int kTargets = 2;
constexpr int kInsideWeights = 3;
constexpr int kOutsideWeights = 4;
constexpr int kOverlapOut = 5;

struct Attrs {
  int64_t batch, class_nums;
  float fg_fraction, fg_thresh, bg_thresh_hi, bg_thresh_lo;
  std::vector<float> weights;
  bool random, cascade, agnostic;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {.batch = reader.Int("batch_size_per_im", 256),
                       .class_nums = reader.Int("class_nums", 0),
                       .fg_fraction = reader.Float("fg_fraction", 0.25F),
                       .fg_thresh = reader.Float("fg_thresh", 0.25F),
                       .bg_thresh_hi = reader.Float("bg_thresh_hi", 0.5F),
                       .bg_thresh_lo = reader.Float("bg_thresh_lo", 0),
                       .weights = reader.Floats("bbox_reg_weights", {0.1F, 0.1F, 0.2F, 0.2F}),
                       .random = reader.Bool("use_random", true),
                       .cascade = reader.Bool("is_cascade_rcnn", false),
                       .agnostic = reader.Bool("is_cls_agnostic", false)};
  if (attrs.weights.size() != 4) reader.Fail("attribute 'bbox_reg_weights' has not four values");
  if (attrs.batch < 0 || !(attrs.fg_fraction >= 0 && attrs.fg_fraction <= 1)) {
    reader.Fail(absl::StrCat("attributes 'batch_size_per_im' and 'fg_fraction' are ", attrs.batch,
                             " and ", attrs.fg_fraction, ", expected 0 or more and 0 to 1"));
  }
  if (attrs.class_nums < (attrs.agnostic ? 2 : 1)) {
    reader.Fail(absl::StrCat("attribute 'class_nums' is ", attrs.class_nums,
                             ", expected 1 or more, and 2 with 'is_cls_agnostic'"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckBoxes(ctx, kRpnRois, "RpnRois"));
  INTERP_RETURN_IF_ERROR(CheckBoxes(ctx, kGtBoxes, "GtBoxes"));
  const Tensor& rois = ctx.input(kRpnRois);
  const Tensor& boxes = ctx.input(kGtBoxes);
  INTERP_ASSIGN_OR_RETURN(const Offsets images, OnlyLevelOffsets(rois, "RpnRois"));
  INTERP_ASSIGN_OR_RETURN(const Offsets of_boxes, OnlyLevelOffsets(boxes, "GtBoxes"));
  if (SequenceCount(of_boxes) != SequenceCount(images)) {
    return InvalidArgument("inputs 'RpnRois' and 'GtBoxes' have ", SequenceCount(images), " and ",
                           SequenceCount(of_boxes), " sequences, expected one for each image");
  }
  INTERP_RETURN_IF_ERROR(CheckRows(ctx, kImInfo, "ImInfo", SequenceCount(images), 3));
  const Tensor* const overlaps = ctx.optional_input(kMaxOverlap);
  if (!ctx.attrs<Attrs>().cascade || (overlaps != nullptr && overlaps->numel() == rois.shape[0])) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "input 'MaxOverlap' ",
      overlaps == nullptr ? "is missing" : "has shape " + ToString(overlaps->shape), ", expected [",
      rois.shape[0], "] with 'is_cascade_rcnn'");
}

// One image. Candidates are its true boxes, then its regions, in the image that the boxes are of.
template <typename T>
struct Image {
  std::vector<Box<T>> candidates;
  const T* boxes;
  int64_t num_boxes;
  const int64_t* crowd;
  const int64_t* classes;
  T scale;
};

template <typename T>
void AddRegions(const T* rois, const T* max_overlaps, int64_t count, Image<T>& image) {
  for (int64_t i = 0; i < count; ++i) {
    const T* const roi = rois + 4 * i;
    const Box<T> box = {roi[0] / image.scale, roi[1] / image.scale, roi[2] / image.scale,
                        roi[3] / image.scale};
    const bool dropped =
        max_overlaps != nullptr &&
        !(box[2] - box[0] + 1 > 0 && box[3] - box[1] + 1 > 0 && max_overlaps[i] < 1);
    if (!dropped) image.candidates.push_back(box);
  }
  // Paddle does not go without a region.
  if (std::ssize(image.candidates) == image.num_boxes) image.candidates.push_back({});
}

// A candidate: its largest overlap and, of foreground, the true box.
template <typename T>
struct Candidate {
  size_t index = 0;
  T overlap = 0;
  int64_t box = -1;
};

template <typename T>
struct Choice {
  std::vector<Candidate<T>> foreground, background;
};

template <typename T>
Choice<T> Classify(const Image<T>& image, const Attrs& attrs) {
  Choice<T> choice;
  std::vector<T> overlaps(static_cast<size_t>(image.num_boxes));
  for (size_t i = 0; i < image.candidates.size(); ++i) {
    Candidate<T> candidate = {i};
    for (int64_t j = 0; j < image.num_boxes; ++j) {
      overlaps[j] = PixelOverlap(image.candidates[i].data(), image.boxes + 4 * j);
      candidate.overlap = std::max(candidate.overlap, overlaps[j]);
    }
    const bool crowd = static_cast<int64_t>(i) < image.num_boxes && image.crowd[i] != 0;
    const T overlap = crowd ? T{-1} : candidate.overlap;
    if (overlap >= attrs.fg_thresh) {
      for (int64_t j = 0; j < image.num_boxes && candidate.box < 0; ++j) {
        if (std::abs(overlap - overlaps[j]) < kOverlapTolerance) candidate.box = j;
      }
      if (candidate.box >= 0) choice.foreground.push_back(candidate);
    } else if (overlap >= attrs.bg_thresh_lo && overlap < attrs.bg_thresh_hi) {
      choice.background.push_back(candidate);
    }
  }
  return choice;
}

template <typename T>
void TakeSample(const Attrs& attrs, const std::optional<RandomStream>& stream, Choice<T>& choice) {
  const auto most = static_cast<int64_t>(static_cast<float>(attrs.batch) * attrs.fg_fraction);
  KeepSample(choice.foreground, most, stream, /*part=*/0);
  KeepSample(choice.background, attrs.batch - std::ssize(choice.foreground), stream, /*part=*/1);
}

// The outputs, image after image. Weights inside and outside are the same.
template <typename T>
struct Labels {
  std::vector<T> rois, targets, weights, overlaps;
  std::vector<int32_t> labels;
  std::vector<int64_t> rows = {0};
};

template <typename T>
absl::Status AddCandidate(const Image<T>& image, const Attrs& attrs, const Candidate<T>& candidate,
                          Labels<T>& out) {
  const Box<T>& box = image.candidates[candidate.index];
  const Box<T> roi = Scaled(box.data(), image.scale);
  const int64_t label = candidate.box < 0 ? 0 : image.classes[candidate.box];
  out.rois.insert(out.rois.end(), roi.begin(), roi.end());
  out.overlaps.push_back(candidate.overlap);
  out.labels.push_back(static_cast<int32_t>(label));
  const size_t first = out.targets.size();
  out.targets.resize(first + static_cast<size_t>(4 * attrs.class_nums));
  out.weights.resize(out.targets.size());
  if (label <= 0) return absl::OkStatus();
  const int64_t column = attrs.agnostic ? 1 : label;
  if (column >= attrs.class_nums) {
    return InvalidArgument("'GtClasses' has the value ", label,
                           ", expected less than 'class_nums', ", attrs.class_nums);
  }
  const Box<T> offsets = BoxOffsets(box.data(), image.boxes + 4 * candidate.box);
  for (size_t k = 0; k < 4; ++k) {
    out.targets[first + 4 * column + k] = offsets[k] / attrs.weights[k];
    out.weights[first + 4 * column + k] = 1;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status AddChosen(const Image<T>& image, const Attrs& attrs, const Choice<T>& choice,
                       Labels<T>& out) {
  for (const auto* const part : {&choice.foreground, &choice.background}) {
    for (const Candidate<T>& candidate : *part) {
      INTERP_RETURN_IF_ERROR(AddCandidate(image, attrs, candidate, out));
    }
  }
  out.rows.push_back(std::ssize(out.labels));
  return absl::OkStatus();
}

template <typename T>
absl::Status Write(KernelContext& ctx, const Labels<T>& out) {
  const int64_t count = std::ssize(out.labels);
  const Shape wide = {count, 4 * ctx.attrs<Attrs>().class_nums};
  const Lod lod = {out.rows};
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kRois, Shape{count, 4}, out.rois, lod));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kLabels, Shape{count, 1}, out.labels, lod));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kTargets, wide, out.targets, lod));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kInsideWeights, wide, out.weights, lod));
  INTERP_RETURN_IF_ERROR(WriteList(ctx, kOutsideWeights, wide, out.weights, lod));
  return WriteList(ctx, kOverlapOut, Shape{count}, out.overlaps, lod);
}

template <typename T>
absl::Status LabelProposals(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& rois = ctx.input(kRpnRois);
  const Tensor& boxes = ctx.input(kGtBoxes);
  const Tensor& info = ctx.input(kImInfo);
  INTERP_ASSIGN_OR_RETURN(const Offsets images, OnlyLevelOffsets(rois, "RpnRois"));
  INTERP_ASSIGN_OR_RETURN(const Offsets of_boxes, OnlyLevelOffsets(boxes, "GtBoxes"));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> crowd,
                          IntegersOf(ctx, kIsCrowd, "IsCrowd", boxes.shape[0]));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> classes,
                          IntegersOf(ctx, kGtClasses, "GtClasses", boxes.shape[0]));
  const T* const overlaps = attrs.cascade ? ctx.input(kMaxOverlap).data<T>() : nullptr;
  Labels<T> out;
  for (int64_t n = 0; n < SequenceCount(images); ++n) {
    const int64_t first = images[n], first_box = of_boxes[n];
    const int64_t count = images[n + 1] - first;
    Image<T> image = {.candidates = {},
                      .boxes = boxes.data<T>() + 4 * first_box,
                      .num_boxes = of_boxes[n + 1] - first_box,
                      .crowd = crowd.data() + first_box,
                      .classes = classes.data() + first_box,
                      .scale = info.data<T>()[n * info.shape[1] + 2]};
    Choice<T> choice;
    if (count > 0) {
      for (int64_t i = 0; i < image.num_boxes; ++i) {
        image.candidates.push_back(Scaled(image.boxes + 4 * i, T{1}));
      }
      AddRegions(rois.data<T>() + 4 * first, overlaps == nullptr ? nullptr : overlaps + first,
                 count, image);
      choice = Classify(image, attrs);
      std::optional<RandomStream> stream;
      if (attrs.random) stream = ctx.random().Split(static_cast<uint64_t>(n));
      if (!attrs.cascade) TakeSample(attrs, stream, choice);
    }
    INTERP_RETURN_IF_ERROR(AddChosen(image, attrs, choice, out));
  }
  return Write(ctx, out);
}

INTERP_REGISTER_OP(OpDef{
    .type = "generate_proposal_labels",
    .inputs = {{"RpnRois"},
               {"GtClasses", kAnyDType},
               {"IsCrowd", kAnyDType},
               {"GtBoxes"},
               {"ImInfo"},
               {"MaxOverlap", kOptional}},
    .outputs = {{"Rois"},
                {"LabelsInt32"},
                {"BboxTargets"},
                {"BboxInsideWeights"},
                {"BboxOutsideWeights"},
                {"MaxOverlapWithGT", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kLabels, DType::kInt32); },
    .infer = Infer,
    .kernels = {{DType::kFloat32, LabelProposals<float>},
                {DType::kFloat64, LabelProposals<double>}},
    .dynamic_outputs = true,
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
