// multiclass_nms, multiclass_nms2, multiclass_nms3: greedy non-maximum suppression per image and
// class, then the best detections of each image over all classes.
//
//   Scores [N, C, M], BBoxes [N, M, B]   one set of boxes for all classes
//   Scores [M, C], BBoxes [M, C, 4]      boxes per class; images from RoisNum or the LoD of BBoxes
//
// Out has rows [class, score, box...] by image, class and falling score (in the second form: rising
// row). Equal scores keep the order of the input, and scores are compared as floats even when they
// are doubles: the order of detections is part of the result.
#include <algorithm>
#include <bit>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box.h"
#include "kernels/detection/nms_list.h"
#include "kernels/detection/polygon.h"
#include "kernels/detection/roi_batches.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kBoxes = 0;
constexpr int kScores = 1;
constexpr int kRoisNum = 2;  // multiclass_nms3 only
constexpr int kOut = 0;
constexpr int kIndex = 1;       // not in multiclass_nms
constexpr int kNmsRoisNum = 2;  // multiclass_nms3 only

NmsAttrs ReadAttrs(AttrReader& reader) { return ReadNmsAttrs(reader, /*background=*/0); }

// The candidates of one image and class, in place.
template <typename T>
struct Candidates {
  const T* scores;
  const T* boxes;
  int64_t count;
  int64_t score_stride;
  int64_t box_stride;

  const T* box(int64_t i) const { return boxes + i * box_stride; }
  T score(int64_t i) const { return scores[i * score_stride]; }
};

// All images of a call. Detections are numbered as output Index wants them:
// base_index(image) + candidate * index_stride + class * class_index_stride.
template <typename T>
struct Batch {
  const T* scores;
  const T* boxes;
  std::vector<int64_t> offsets;  // rows of boxes by image
  int64_t num_classes;
  int64_t box_size;
  bool per_class_boxes;

  int64_t num_images() const { return static_cast<int64_t>(offsets.size()) - 1; }
  Candidates<T> candidates(int64_t image, int64_t label) const {
    const int64_t row = offsets[image], count = offsets[image + 1] - row;
    if (per_class_boxes) {
      const int64_t cell = row * num_classes + label;
      return {scores + cell, boxes + cell * box_size, count, num_classes, num_classes * box_size};
    }
    return {scores + row * num_classes + label * count, boxes + row * box_size, count, 1, box_size};
  }
  int32_t index(int64_t image, int64_t label, int64_t candidate) const {
    const int64_t row = offsets[image] + candidate;
    return static_cast<int32_t>(per_class_boxes ? row * num_classes + label : row);
  }
};

struct Detection {
  float score;
  int32_t label;
  int32_t candidate;
};

// Maps floats to integers in falling order; -0 and 0 are one value. REQUIRES: not NaN.
uint32_t FallingKey(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);
  return ~(bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u));
}

// Candidates above the score threshold by falling score, at most `top_k` unless that is negative.
// A key holds the score above the candidate's number, so equal scores stay in order.
template <typename T>
void SortByScore(const Candidates<T>& c, T threshold, int64_t top_k, std::vector<uint64_t>& keys) {
  keys.clear();
  for (int64_t i = 0; i < c.count; ++i) {
    const T score = c.score(i);
    if (!(score > threshold)) continue;
    keys.push_back(uint64_t{FallingKey(static_cast<float>(score))} << 32 |
                   static_cast<uint64_t>(i));
  }
  if (top_k >= 0 && top_k < static_cast<int64_t>(keys.size())) {
    std::nth_element(keys.begin(), keys.begin() + top_k, keys.end());
    keys.resize(top_k);
  }
  std::sort(keys.begin(), keys.end());
}

// The boxes kept so far, of either kind.
template <typename T>
class KeptBoxes {
 public:
  KeptBoxes(int64_t box_size, bool normalized) : box_size_(box_size), boxes_(normalized) {}

  void clear() {
    boxes_.clear();
    polygons_.clear();
  }
  void Add(const T* box) {
    if (box_size_ == 4) {
      boxes_.Add(box);
    } else {
      polygons_.insert(polygons_.end(), box, box + box_size_);
    }
  }
  bool AllOverlapsWithin(const T* box, T threshold) {
    if (box_size_ == 4) return boxes_.AllOverlapsWithin(box, threshold);
    polygon_.assign(box, box + box_size_);
    for (size_t i = 0; i < polygons_.size(); i += box_size_) {
      const absl::Span<const double> kept(polygons_.data() + i, box_size_);
      if (!(static_cast<T>(PolygonOverlap(polygon_, kept)) <= threshold)) return false;
    }
    return true;
  }

 private:
  int64_t box_size_;
  BoxList<T> boxes_;
  std::vector<double> polygons_, polygon_;
};

// Greedy suppression within one class: appends the survivors to `kept`.
template <typename T>
void Suppress(const Candidates<T>& c, const NmsAttrs& attrs, int32_t label,
              std::vector<uint64_t>& keys, KeptBoxes<T>& boxes, std::vector<Detection>& kept) {
  SortByScore(c, static_cast<T>(attrs.score_threshold), attrs.nms_top_k, keys);
  boxes.clear();
  T threshold = static_cast<T>(attrs.nms_threshold);
  const T eta = static_cast<T>(attrs.nms_eta);
  for (const uint64_t key : keys) {
    const int32_t candidate = static_cast<int32_t>(key & 0xffffffffu);
    if (!boxes.AllOverlapsWithin(c.box(candidate), threshold)) continue;
    boxes.Add(c.box(candidate));
    kept.push_back({static_cast<float>(c.score(candidate)), label, candidate});
    if (eta < 1 && threshold > 0.5) threshold *= eta;
  }
}

bool ByRow(const Detection& a, const Detection& b) {
  return a.label != b.label ? a.label < b.label : a.candidate < b.candidate;
}

// The detections of one image, from those of its classes.
std::vector<Detection> Merge(absl::Span<std::vector<Detection>> classes, int64_t keep_top_k,
                             bool by_row) {
  std::vector<Detection> all;
  for (std::vector<Detection>& detections : classes) {
    if (by_row) std::sort(detections.begin(), detections.end(), ByRow);
    all.insert(all.end(), detections.begin(), detections.end());
  }
  if (keep_top_k < 0 || keep_top_k >= static_cast<int64_t>(all.size())) return all;
  std::stable_sort(all.begin(), all.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  all.resize(keep_top_k);
  if (by_row) {
    std::sort(all.begin(), all.end(), ByRow);
  } else {
    std::stable_sort(all.begin(), all.end(),
                     [](const Detection& a, const Detection& b) { return a.label < b.label; });
  }
  return all;
}

template <typename T>
std::vector<std::vector<Detection>> SuppressAll(const Batch<T>& batch, const NmsAttrs& attrs,
                                                int num_threads) {
  const int64_t num_classes = batch.num_classes, num_images = batch.num_images();
  std::vector<std::vector<Detection>> by_class(num_images * num_classes);
  const int64_t per_task = batch.offsets.back() / std::max<int64_t>(num_images, 1) + 1;
  const int64_t grain = GrainFor(per_task);
  ParallelFor(num_threads, num_images * num_classes, grain, [&](int64_t begin, int64_t end) {
    std::vector<uint64_t> keys;
    KeptBoxes<T> boxes(batch.box_size, attrs.normalized);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / num_classes, label = task % num_classes;
      if (label == attrs.background_label) continue;
      Suppress(batch.candidates(image, label), attrs, static_cast<int32_t>(label), keys, boxes,
               by_class[task]);
    }
  });
  std::vector<std::vector<Detection>> by_image;
  for (int64_t image = 0; image < num_images; ++image) {
    by_image.push_back(Merge(absl::MakeSpan(by_class).subspan(image * num_classes, num_classes),
                             attrs.keep_top_k, batch.per_class_boxes));
  }
  return by_image;
}

// Scores of rank 2 are those of boxes that each class has for itself.
absl::Status CheckShapes(const Shape& boxes, const Shape& scores) {
  if (scores.rank() != 2) return CheckBoxesAndScores(boxes, scores);
  if (boxes == Shape{scores[0], scores[1], 4}) return absl::OkStatus();
  return InvalidArgument("input 'BBoxes' has shape ", ToString(boxes), ", expected [", scores[0],
                         ",", scores[1], ",4] for 'Scores' ", ToString(scores));
}

template <typename T>
absl::StatusOr<Batch<T>> MakeBatch(KernelContext& ctx, bool has_rois_num) {
  const Tensor& boxes = ctx.input(kBoxes);
  const Tensor& scores = ctx.input(kScores);
  INTERP_RETURN_IF_ERROR(CheckShapes(boxes.shape, scores.shape));
  const bool per_class = scores.shape.rank() == 2;
  std::vector<int64_t> offsets;
  if (per_class) {
    const Tensor* rois_num = has_rois_num ? ctx.optional_input(kRoisNum) : nullptr;
    INTERP_ASSIGN_OR_RETURN(offsets, RoiOffsets(boxes, rois_num));
  } else {
    for (int64_t i = 0; i <= scores.shape[0]; ++i) offsets.push_back(i * boxes.shape[1]);
  }
  INTERP_RETURN_IF_ERROR(CheckBoxCount(boxes.shape));
  return Batch<T>{scores.data<T>(), boxes.data<T>(), std::move(offsets),
                  scores.shape[1],  boxes.shape[2],  per_class};
}

// Ops without an index mark an empty result by a single -1.
template <typename T>
absl::Status WriteNothing(KernelContext& ctx, Tensor& out) {
  out.shape = {1, 1};
  out.lod = {{0, 1}};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  out.mutable_data<T>()[0] = T{-1};
  return absl::OkStatus();
}

template <typename T>
absl::Status WriteDetections(KernelContext& ctx, const Batch<T>& batch,
                             const std::vector<std::vector<Detection>>& by_image, Tensor& out,
                             Tensor* index) {
  out.shape = {out.lod[0].back(), batch.box_size + 2};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  T* row = out.mutable_data<T>();
  int32_t* number = nullptr;
  if (index != nullptr) {
    index->shape = {out.shape[0], 1};
    INTERP_RETURN_IF_ERROR(ctx.Allocate(*index));
    number = index->mutable_data<int32_t>();
  }
  for (int64_t image = 0; image < batch.num_images(); ++image) {
    for (const Detection& d : by_image[image]) {
      const Candidates<T> candidates = batch.candidates(image, d.label);
      *row++ = static_cast<T>(d.label);
      *row++ = candidates.score(d.candidate);
      row = std::copy_n(candidates.box(d.candidate), batch.box_size, row);
      if (number != nullptr) *number++ = batch.index(image, d.label, d.candidate);
    }
  }
  return absl::OkStatus();
}

// Detections per image.
absl::Status WriteCounts(KernelContext& ctx, const std::vector<int64_t>& offsets, Tensor& counts) {
  counts.shape = {static_cast<int64_t>(offsets.size()) - 1};
  counts.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(counts));
  for (int64_t i = 0; i < counts.shape[0]; ++i) {
    counts.mutable_data<int32_t>()[i] = static_cast<int32_t>(offsets[i + 1] - offsets[i]);
  }
  return absl::OkStatus();
}

// `counts`: gives the detections of each image as NmsRoisNum instead of a LoD.
template <typename T, bool counts>
absl::Status MulticlassNms(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Batch<T> batch, MakeBatch<T>(ctx, counts));
  const std::vector<std::vector<Detection>> by_image =
      SuppressAll(batch, ctx.attrs<NmsAttrs>(), ctx.num_threads());
  std::vector<int64_t> offsets = {0};
  for (const std::vector<Detection>& detections : by_image) {
    offsets.push_back(offsets.back() + static_cast<int64_t>(detections.size()));
  }
  Tensor& out = ctx.output(kOut);
  Tensor* index = ctx.optional_output(kIndex);
  if (offsets.back() == 0 && index == nullptr) {
    INTERP_RETURN_IF_ERROR(WriteNothing<T>(ctx, out));
    offsets = {0, 1};
  } else {
    out.lod = {offsets};
    INTERP_RETURN_IF_ERROR(WriteDetections(ctx, batch, by_image, out, index));
  }
  if (index != nullptr) index->lod = out.lod;
  if constexpr (counts) {
    out.lod.clear();
    if (index != nullptr) index->lod.clear();
    if (Tensor* of_images = ctx.optional_output(kNmsRoisNum)) {
      return WriteCounts(ctx, offsets, *of_images);
    }
  }
  return absl::OkStatus();
}

DType ScoresType(const DTypeContext& ctx) { return ctx.input(kScores); }

void InferIndexType(DTypeContext& ctx) { ctx.Set(kIndex, DType::kInt32); }

void InferIndexAndCountType(DTypeContext& ctx) {
  ctx.Set(kIndex, DType::kInt32);
  ctx.Set(kNmsRoisNum, DType::kInt32);
}

OpDef WithLodDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"BBoxes"}, {"Scores"}},
      .outputs = {{"Out"}, {"Index", kOptional}},
      .parse = ParseAttrs<NmsAttrs, ReadAttrs>,
      .kernel_dtype = ScoresType,
      .infer_dtype = InferIndexType,
      .kernels = {{DType::kFloat32, MulticlassNms<float, false>},
                  {DType::kFloat64, MulticlassNms<double, false>}},
      .dynamic_outputs = true,
      .gradient = {.none = true},
  };
}

INTERP_REGISTER_OP(WithLodDef("multiclass_nms"));
INTERP_REGISTER_OP(WithLodDef("multiclass_nms2"));

INTERP_REGISTER_OP(OpDef{
    .type = "multiclass_nms3",
    .inputs = {{"BBoxes"}, {"Scores"}, {"RoisNum", kOptional | kAnyDType}},
    .outputs = {{"Out"}, {"Index", kOptional}, {"NmsRoisNum", kOptional}},
    .parse = ParseAttrs<NmsAttrs, ReadAttrs>,
    .kernel_dtype = ScoresType,
    .infer_dtype = InferIndexAndCountType,
    .kernels = {{DType::kFloat32, MulticlassNms<float, true>},
                {DType::kFloat64, MulticlassNms<double, true>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
