// locality_aware_nms: suppression for text detectors, whose boxes come in rows of near duplicates.
//
// BBoxes [N,M,B], Scores [N,C,M]. Per image and class, a box that overlaps the one before it is
// merged into it, weighted by the scores, which add up; what remains goes through greedy
// suppression. Boxes are shared by the classes of an image: merging for one class changes them for
// the next. Out has rows [class, score, box...] by image and class with their offsets, and a single
// -1 where nothing remains.
#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"
#include "kernels/detection/box.h"
#include "kernels/detection/nms_list.h"
#include "kernels/detection/polygon.h"

namespace interp {
namespace {

constexpr int kBoxes = 0;
constexpr int kScores = 1;
constexpr int kOut = 0;

NmsAttrs ReadAttrs(AttrReader& reader) { return ReadNmsAttrs(reader, /*background=*/-1); }

// The boxes and scores of one image, which merging changes.
template <typename T>
struct Image {
  std::vector<T> boxes;
  std::vector<T> scores;  // class by class
  int64_t count;
  int64_t box_size;
  bool normalized;

  const T* box(int64_t i) const { return boxes.data() + i * box_size; }
  T Overlap(int64_t i, int64_t k) const {
    if (box_size != 4) {
      const std::vector<double> a(box(i), box(i) + box_size), b(box(k), box(k) + box_size);
      return static_cast<T>(PolygonOverlap(a, b));
    }
    const T *const a = box(i), *const b = box(k);
    return BoxOverlap(a[0], a[1], a[2], a[3], BoxArea(a, normalized), b[0], b[1], b[2], b[3],
                      BoxArea(b, normalized), normalized ? T{0} : T{1});
  }
};

// Merges runs of boxes that overlap beyond `threshold`; the candidates that remain.
template <typename T>
std::vector<int64_t> MergeNeighbours(Image<T>& image, T* scores, T threshold) {
  std::vector<int64_t> remaining;
  for (int64_t i = 0; i < image.count; ++i) {
    if (remaining.empty() || !(image.Overlap(i, remaining.back()) > threshold)) {
      remaining.push_back(i);
      continue;
    }
    const int64_t into = remaining.back();
    T* const box = image.boxes.data() + into * image.box_size;
    for (int64_t k = 0; k < image.box_size; ++k) {
      box[k] = (image.box(i)[k] * scores[i] + box[k] * scores[into]) / (scores[i] + scores[into]);
    }
    scores[into] += scores[i];
  }
  return remaining;
}

struct Detection {
  int64_t label;
  ScoredIndex at;
};

template <typename T>
void DetectClass(const NmsAttrs& attrs, Image<T>& image, int64_t label,
                 std::vector<Detection>& detections) {
  T* const scores = image.scores.data() + label * image.count;
  const T threshold = static_cast<T>(attrs.nms_threshold);
  std::vector<ScoredIndex> list;
  for (const int64_t i : MergeNeighbours(image, scores, threshold)) {
    if (scores[i] > static_cast<T>(attrs.score_threshold)) {
      list.push_back({static_cast<float>(scores[i]), i});
    }
  }
  SortAndCut(list, attrs.nms_top_k);
  const NmsRule<T> rule = {threshold, static_cast<T>(attrs.nms_eta)};
  for (const ScoredIndex& kept :
       SuppressList(list, rule, [&](int64_t i, int64_t k) { return image.Overlap(i, k); })) {
    detections.push_back({label, kept});
  }
}

// By class; the best of all classes where there are more than `most`, unless that is negative.
void KeepBest(std::vector<Detection>& detections, int64_t most) {
  if (most < 0 || most >= static_cast<int64_t>(detections.size())) return;
  std::stable_sort(detections.begin(), detections.end(),
                   [](const Detection& a, const Detection& b) { return a.at.score > b.at.score; });
  detections.resize(most);
  std::stable_sort(detections.begin(), detections.end(),
                   [](const Detection& a, const Detection& b) { return a.label < b.label; });
}

template <typename T>
void AppendRows(const Image<T>& image, const std::vector<Detection>& detections,
                std::vector<T>& rows) {
  for (const Detection& d : detections) {
    rows.push_back(static_cast<T>(d.label));
    rows.push_back(image.scores[d.label * image.count + d.at.index]);
    rows.insert(rows.end(), image.box(d.at.index), image.box(d.at.index) + image.box_size);
  }
}

template <typename T>
absl::Status LocalityAwareNms(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<NmsAttrs>();
  const Shape& boxes = ctx.input(kBoxes).shape;
  const Shape& scores = ctx.input(kScores).shape;
  INTERP_RETURN_IF_ERROR(CheckBoxesAndScores(boxes, scores));
  const T* box = ctx.input(kBoxes).data<T>();
  const T* score = ctx.input(kScores).data<T>();
  std::vector<T> rows;
  std::vector<int64_t> offsets = {0};
  const int64_t images = boxes.numel() == 0 ? 0 : boxes[0];
  for (int64_t n = 0; n < images; ++n) {
    Image<T> image = {{box, box + boxes.numel(1, 3)},
                      {score, score + scores.numel(1, 3)},
                      boxes[1],
                      boxes[2],
                      attrs.normalized};
    box += boxes.numel(1, 3);
    score += scores.numel(1, 3);
    std::vector<Detection> detections;
    for (int64_t label = 0; label < scores[1]; ++label) {
      if (label != attrs.background_label) DetectClass(attrs, image, label, detections);
    }
    KeepBest(detections, attrs.keep_top_k);
    AppendRows(image, detections, rows);
    offsets.push_back(offsets.back() + std::ssize(detections));
  }
  Tensor& out = ctx.output(kOut);
  out.shape = {offsets.back(), boxes[2] + 2};
  if (offsets.back() == 0) {
    out.shape = {1, 1};
    offsets = {0, 1};
    rows = {T{-1}};
  }
  out.lod = {offsets};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(rows.begin(), rows.end(), out.mutable_data<T>());
  return absl::OkStatus();
}

DType ScoresType(const DTypeContext& ctx) { return ctx.input(kScores); }

INTERP_REGISTER_OP(OpDef{
    .type = "locality_aware_nms",
    .inputs = {{"BBoxes"}, {"Scores"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<NmsAttrs, ReadAttrs>,
    .kernel_dtype = ScoresType,
    .kernels = {{DType::kFloat32, LocalityAwareNms<float>},
                {DType::kFloat64, LocalityAwareNms<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
