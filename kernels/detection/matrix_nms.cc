// matrix_nms: soft non-maximum suppression. By falling score, candidate i of a class gets
//
//   score_i * min over j < i of decay(overlap(i, j), max over k < j of overlap(j, k))
//
// decay(o, m) = (1 - o) / (1 - m), or exp((m^2 - o^2) * sigma) when gaussian. Out has rows
// [class, score, box...] by image and falling decayed score. The overlaps of one candidate are used
// up before the next one's are made: memory is linear in the number of candidates.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box.h"
#include "kernels/detection/nms_list.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kBoxes = 0;
constexpr int kScores = 1;
constexpr int kOut = 0;
constexpr int kIndex = 1;
constexpr int kRoisNum = 2;

struct MatrixNmsAttrs {
  float score_threshold, post_threshold, gaussian_sigma;
  int64_t nms_top_k, keep_top_k, background_label;
  bool normalized, use_gaussian;
};

MatrixNmsAttrs ReadAttrs(AttrReader& reader) {
  return {.score_threshold = reader.Float("score_threshold", 0),
          .post_threshold = reader.Float("post_threshold", 0),
          .gaussian_sigma = reader.Float("gaussian_sigma", 2),
          .nms_top_k = reader.Int("nms_top_k", -1),
          .keep_top_k = reader.Int("keep_top_k", -1),
          .background_label = reader.Int("background_label", 0),
          .normalized = reader.Bool("normalized", true),
          .use_gaussian = reader.Bool("use_gaussian", false)};
}

template <typename T>
struct Detection {
  T score;
  int32_t label;
  int32_t candidate;
};

// Orders numbers by falling key; NaN comes last, so that any input gives an order.
template <typename T>
bool Above(T a, T b) {
  return a > b || (std::isnan(b) && !std::isnan(a));
}

// Puts the numbers of the `count` best candidates first. The algorithm decides where equal scores
// end up, and Paddle uses this one.
template <typename T, typename Key>
void SortBest(std::vector<int32_t>& order, int64_t count, const Key& key) {
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [&](int32_t a, int32_t b) { return Above<T>(key(a), key(b)); });
}

// The least of `start` and value(0), ..., value(count - 1), NaN left out. Kept in lanes, so that
// vectors can be used.
template <typename V, typename Value>
V Least(V start, int64_t count, const Value& value) {
  constexpr int kLanes = 32;
  V lanes[kLanes];
  std::fill_n(lanes, kLanes, start);
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t j = 0; j < whole; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const V v = value(j + lane);
      lanes[lane] = v < lanes[lane] ? v : lanes[lane];
    }
  }
  for (int64_t j = whole; j < count; ++j) {
    const V v = value(j);
    lanes[0] = v < lanes[0] ? v : lanes[0];
  }
  return *std::min_element(lanes, lanes + kLanes);
}

// The smallest decay, at most 1. Ratios that are NaN (a box that another one covers exactly was
// itself covered) do not count. The linear form divides doubles whatever T is, as Paddle does.
template <typename T>
T SmallestDecay(const MatrixNmsAttrs& attrs, const T* overlaps, const T* worst, int64_t count) {
  if (!attrs.use_gaussian) {
    return static_cast<T>(
        Least(1.0, count, [=](int64_t j) { return (1.0 - overlaps[j]) / (1.0 - worst[j]); }));
  }
  const T sigma = attrs.gaussian_sigma;
  // exp is monotonic: one call serves all.
  return std::exp(Least(T{0}, count, [=](int64_t j) {
    return (worst[j] * worst[j] - overlaps[j] * overlaps[j]) * sigma;
  }));
}

// Appends what is left of one class to `kept`.
template <typename T>
void DecayClass(const MatrixNmsAttrs& attrs, const T* scores, const T* boxes, int64_t num_boxes,
                int64_t box_size, int32_t label, std::vector<Detection<T>>& kept) {
  const T score_threshold = static_cast<T>(attrs.score_threshold);
  const T post_threshold = static_cast<T>(attrs.post_threshold);
  std::vector<int32_t> order;
  for (int64_t i = 0; i < num_boxes; ++i) {
    if (!(scores[i] <= score_threshold)) order.push_back(static_cast<int32_t>(i));
  }
  int64_t count = static_cast<int64_t>(order.size());
  if (attrs.nms_top_k >= 0) count = std::min(count, attrs.nms_top_k);
  SortBest<T>(order, count, [scores](int32_t i) { return scores[i]; });

  BoxList<T> better(attrs.normalized);
  std::vector<T> overlaps(count), worst(count);
  for (int64_t i = 0; i < count; ++i) {
    const T* box = boxes + order[i] * box_size;
    better.Overlaps(box, 0, i, overlaps.data());
    worst[i] = -Least(T{0}, i, [&overlaps](int64_t j) { return -overlaps[j]; });
    better.Add(box);
    const T decay = SmallestDecay(attrs, overlaps.data(), worst.data(), i);
    const T score = decay * scores[order[i]];
    if (!(score <= post_threshold)) kept.push_back({score, label, order[i]});
  }
}

// The detections of one image, best first.
template <typename T>
std::vector<Detection<T>> Merge(absl::Span<const std::vector<Detection<T>>> classes,
                                int64_t keep_top_k) {
  std::vector<Detection<T>> all;
  for (const std::vector<Detection<T>>& detections : classes) {
    all.insert(all.end(), detections.begin(), detections.end());
  }
  std::vector<int32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t count = static_cast<int64_t>(all.size());
  if (keep_top_k >= 0) count = std::min(count, keep_top_k);
  SortBest<T>(order, count, [&all](int32_t i) { return all[i].score; });
  std::vector<Detection<T>> best;
  for (int64_t i = 0; i < count; ++i) best.push_back(all[order[i]]);
  return best;
}

template <typename T>
std::vector<std::vector<Detection<T>>> DecayAll(KernelContext& ctx) {
  const Tensor& boxes = ctx.input(kBoxes);
  const Tensor& scores = ctx.input(kScores);
  const MatrixNmsAttrs& attrs = ctx.attrs<MatrixNmsAttrs>();
  const int64_t num_classes = scores.shape[1], num_boxes = boxes.shape[1];
  const int64_t box_size = boxes.shape[2];
  std::vector<std::vector<Detection<T>>> by_class(scores.shape[0] * num_classes);
  const int64_t grain = GrainFor(num_boxes);
  ParallelFor(ctx.num_threads(), std::ssize(by_class), grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / num_classes, label = task % num_classes;
      if (label == attrs.background_label) continue;
      DecayClass(attrs, scores.data<T>() + task * num_boxes,
                 boxes.data<T>() + image * num_boxes * box_size, num_boxes, box_size,
                 static_cast<int32_t>(label), by_class[task]);
    }
  });
  std::vector<std::vector<Detection<T>>> by_image;
  for (int64_t image = 0; image < scores.shape[0]; ++image) {
    by_image.push_back(Merge<T>(
        absl::MakeConstSpan(by_class).subspan(image * num_classes, num_classes), attrs.keep_top_k));
  }
  return by_image;
}

template <typename T>
absl::Status MatrixNms(KernelContext& ctx) {
  const Tensor& boxes = ctx.input(kBoxes);
  INTERP_RETURN_IF_ERROR(CheckBoxesAndScores(boxes.shape, ctx.input(kScores).shape));
  INTERP_RETURN_IF_ERROR(CheckBoxCount(boxes.shape));
  const int64_t num_boxes = boxes.shape[1], box_size = boxes.shape[2];
  const std::vector<std::vector<Detection<T>>> by_image = DecayAll<T>(ctx);

  Tensor& out = ctx.output(kOut);
  out.shape = {0, box_size + 2};
  for (const auto& detections : by_image) out.shape[0] += std::ssize(detections);
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  T* row = out.mutable_data<T>();
  int32_t* number = nullptr;
  if (Tensor* index = ctx.optional_output(kIndex)) {
    index->shape = {out.shape[0], 1};
    index->lod.clear();
    INTERP_RETURN_IF_ERROR(ctx.Allocate(*index));
    number = index->mutable_data<int32_t>();
  }
  int32_t* count = nullptr;
  if (Tensor* rois_num = ctx.optional_output(kRoisNum)) {
    rois_num->shape = {std::ssize(by_image)};
    rois_num->lod.clear();
    INTERP_RETURN_IF_ERROR(ctx.Allocate(*rois_num));
    count = rois_num->mutable_data<int32_t>();
  }
  for (int64_t image = 0; image < std::ssize(by_image); ++image) {
    for (const Detection<T>& d : by_image[image]) {
      const int64_t box = image * num_boxes + d.candidate;
      *row++ = static_cast<T>(d.label);
      *row++ = d.score;
      row = std::copy_n(boxes.data<T>() + box * box_size, box_size, row);
      if (number != nullptr) *number++ = static_cast<int32_t>(box);
    }
    if (count != nullptr) *count++ = static_cast<int32_t>(by_image[image].size());
  }
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) {
  ctx.Set(kIndex, DType::kInt32);
  ctx.Set(kRoisNum, DType::kInt32);
}

INTERP_REGISTER_OP(OpDef{
    .type = "matrix_nms",
    .inputs = {{"BBoxes"}, {"Scores"}},
    .outputs = {{"Out"}, {"Index", kOptional}, {"RoisNum", kOptional}},
    .parse = ParseAttrs<MatrixNmsAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .kernels = {{DType::kFloat32, MatrixNms<float>}, {DType::kFloat64, MatrixNms<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
