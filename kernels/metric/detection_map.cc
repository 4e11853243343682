// detection_map: mean average precision of detections, over the batches so far.
//
// DetectRes [D,6] has rows [class, score, box], Label [G,6] rows [class, difficult, box] or [G,5]
// without `difficult`; their LoDs say which image they belong to. By falling score a detection
// takes the box of its class and image that it overlaps most, beyond overlap_threshold, unless that
// is taken. PosCount, TruePos and FalsePos are counts of before, which HasState turns on, Accum...
// those with this batch: of each class how many boxes there are, and by rows [score, 0 or 1] which
// detections found one.
//
// As in Paddle, it is a class with `background_label` boxes that is left out of the mean.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/read_choice.h"

namespace interp {
namespace {

constexpr int kDetections = 0;
constexpr int kLabels = 1;
constexpr int kHasState = 2;
constexpr int kPosCount = 3;
constexpr int kTruePos = 4;
constexpr int kFalsePos = 5;
constexpr int kAccumPosCount = 0;
constexpr int kAccumTruePos = 1;
constexpr int kAccumFalsePos = 2;
constexpr int kMap = 3;

struct MapAttrs {
  int64_t class_num, background_label;
  float overlap_threshold;
  bool evaluate_difficult, eleven_points;
};

MapAttrs ReadAttrs(AttrReader& reader) {
  const MapAttrs attrs = {.class_num = reader.Int("class_num", 0),
                          .background_label = reader.Int("background_label", 0),
                          .overlap_threshold = reader.Float("overlap_threshold", 0.5f),
                          .evaluate_difficult = reader.Bool("evaluate_difficult", true),
                          .eleven_points = ReadChoice<bool>(
                              reader, "ap_type", {{"integral", false}, {"11point", true}})};
  constexpr int64_t kMostClasses = 1 << 20;
  if (attrs.class_num <= 0 || attrs.class_num > kMostClasses) {
    reader.Fail(absl::StrCat("attribute 'class_num' is ", attrs.class_num, ", expected 1 to ",
                             kMostClasses));
  }
  return attrs;
}

template <typename T>
struct Box {
  T xmin, ymin, xmax, ymax;
  bool difficult = false;
};

template <typename T>
T Overlap(const Box<T>& a, const Box<T>& b) {
  if (b.xmin > a.xmax || b.xmax < a.xmin || b.ymin > a.ymax || b.ymax < a.ymin) return T{0};
  const T width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin);
  const T height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin);
  const T inter = width * height;
  return inter /
         ((a.xmax - a.xmin) * (a.ymax - a.ymin) + (b.xmax - b.xmin) * (b.ymax - b.ymin) - inter);
}

// A detection of one class, and whether it counts in the list it is in.
template <typename T>
struct Scored {
  T score;
  int32_t flag;
};

// The counts of one class.
template <typename T>
struct ClassCounts {
  int32_t boxes = 0;
  bool seen = false;  // some image had a box of it, or the state had it
  std::vector<Scored<T>> hits, misses;

  void Add(T score, bool hit) {
    hits.push_back({score, hit ? 1 : 0});
    misses.push_back({score, hit ? 0 : 1});
  }
};

template <typename T>
using Counts = std::vector<ClassCounts<T>>;

// The class in the first column of a row.
template <typename T>
absl::StatusOr<int64_t> ClassOf(const T* row, int64_t class_num, absl::string_view name) {
  if (row[0] >= 0 && row[0] < static_cast<T>(class_num)) return static_cast<int64_t>(row[0]);
  return InvalidArgument("input '", name, "' has the class ", row[0], ", expected 0 to ",
                         class_num - 1);
}

// Boxes of one image by class.
template <typename T>
absl::StatusOr<std::map<int64_t, std::vector<Box<T>>>> BoxesOfImage(const Tensor& labels,
                                                                    int64_t begin, int64_t end,
                                                                    int64_t class_num) {
  const int64_t columns = labels.shape[1];
  std::map<int64_t, std::vector<Box<T>>> boxes;
  for (int64_t i = begin; i < end; ++i) {
    const T* const row = labels.data<T>() + i * columns;
    INTERP_ASSIGN_OR_RETURN(const int64_t label, ClassOf(row, class_num, "Label"));
    const T* const box = row + columns - 4;
    const bool difficult = columns == 6 && !(std::abs(row[1]) < static_cast<T>(1e-6));
    boxes[label].push_back({box[0], box[1], box[2], box[3], difficult});
  }
  return boxes;
}

// A detection, clipped to the image.
template <typename T>
Box<T> ClippedBox(const T* box) {
  const auto clip = [](T v) { return std::max(std::min(v, T{1}), T{0}); };
  return {clip(box[0]), clip(box[1]), clip(box[2]), clip(box[3])};
}

// The detections of one class in one image, rows of DetectRes, against its boxes.
template <typename T>
void MatchClass(const MapAttrs& attrs, std::vector<const T*> rows, const std::vector<Box<T>>& boxes,
                ClassCounts<T>& counts) {
  std::stable_sort(rows.begin(), rows.end(), [](const T* a, const T* b) { return a[1] > b[1]; });
  std::vector<bool> taken(boxes.size());
  for (const T* const row : rows) {
    const Box<T> box = ClippedBox(row + 2);
    T best = -1;
    size_t at = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
      const T overlap = Overlap(box, boxes[i]);
      if (!(overlap > best)) continue;
      best = overlap;
      at = i;
    }
    if (!(best > attrs.overlap_threshold)) {
      counts.Add(row[1], false);
    } else if (attrs.evaluate_difficult || !boxes[at].difficult) {
      counts.Add(row[1], !taken[at]);
      taken[at] = true;
    }
  }
}

template <typename T>
absl::Status CountImage(const MapAttrs& attrs, const Tensor& detections, int64_t begin, int64_t end,
                        const std::map<int64_t, std::vector<Box<T>>>& boxes, Counts<T>& counts) {
  for (const auto& [label, of_class] : boxes) {
    const auto counted = std::count_if(of_class.begin(), of_class.end(), [&](const Box<T>& box) {
      return attrs.evaluate_difficult || !box.difficult;
    });
    if (counted == 0) continue;
    counts[label].boxes = WrapAdd(counts[label].boxes, static_cast<int32_t>(counted));
    counts[label].seen = true;
  }
  std::map<int64_t, std::vector<const T*>> rows;
  for (int64_t i = begin; i < end; ++i) {
    const T* const row = detections.data<T>() + 6 * i;
    INTERP_ASSIGN_OR_RETURN(const int64_t label, ClassOf(row, attrs.class_num, "DetectRes"));
    rows[label].push_back(row);
  }
  for (const auto& [label, of_class] : rows) {
    const auto found = boxes.find(label);
    if (found != boxes.end()) {
      MatchClass(attrs, of_class, found->second, counts[label]);
      continue;
    }
    for (const T* const row : of_class) counts[label].Add(row[1], false);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadFlags(const Tensor& state, absl::string_view name, Counts<T>& counts,
                       std::vector<Scored<T>> ClassCounts<T>::*member) {
  if (state.shape.rank() != 2 || state.shape[1] != 2) {
    return InvalidArgument("input '", name, "' has shape ", ToString(state.shape),
                           ", expected [n,2]");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(state, name));
  if (offsets.size() > counts.size() + 1) {
    return InvalidArgument("input '", name, "' has ", offsets.size() - 1, " sequences, expected ",
                           counts.size(), ", one for each class");
  }
  for (size_t c = 0; c + 1 < offsets.size(); ++c) {
    for (int64_t i = offsets[c]; i < offsets[c + 1]; ++i) {
      const T* const row = state.data<T>() + 2 * i;
      (counts[c].*member).push_back({row[0], row[1] != 0 ? 1 : 0});
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadState(const KernelContext& ctx, Counts<T>& counts) {
  const Tensor* const has_state = ctx.optional_input(kHasState);
  const bool on = has_state != nullptr && has_state->numel() > 0 &&
                  has_state->dtype == DType::kInt32 && has_state->data<int32_t>()[0] != 0;
  if (!on || !ctx.has_input(kPosCount)) return absl::OkStatus();
  if (!ctx.has_input(kTruePos) || !ctx.has_input(kFalsePos)) {
    return InvalidArgument("input 'PosCount' needs 'TruePos' and 'FalsePos'");
  }
  const Tensor& pos = ctx.input(kPosCount);
  if (pos.dtype != DType::kInt32 || pos.numel() != std::ssize(counts)) {
    return InvalidArgument("input 'PosCount' is ", DescribeType(pos), ", expected int32[",
                           counts.size(), ",1]");
  }
  for (size_t c = 0; c < counts.size(); ++c) {
    counts[c].boxes = pos.data<int32_t>()[c];
    counts[c].seen = true;
  }
  INTERP_RETURN_IF_ERROR(ReadFlags(ctx.input(kTruePos), "TruePos", counts, &ClassCounts<T>::hits));
  return ReadFlags(ctx.input(kFalsePos), "FalsePos", counts, &ClassCounts<T>::misses);
}

// Running sums of the flags by falling score.
template <typename T>
std::vector<T> Accumulate(std::vector<Scored<T>> list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Scored<T>& a, const Scored<T>& b) { return a.score > b.score; });
  std::vector<T> sums;
  int64_t sum = 0;
  for (const Scored<T>& entry : list) {
    sum += entry.flag;
    sums.push_back(static_cast<T>(sum));
  }
  return sums;
}

// The mean over recalls 0, 0.1, ... 1 of the best precision at that recall or more.
template <typename T>
T ElevenPoints(const std::vector<T>& precision, const std::vector<T>& recall) {
  T mean = 0;
  for (int j = 10; j >= 0; --j) {
    T best = 0;
    for (size_t i = 0; i < recall.size(); ++i) {
      if (!(recall[i] < j / 10.)) best = std::max(best, precision[i]);
    }
    mean += best / 11;
  }
  return mean;
}

template <typename T>
T AveragePrecision(const MapAttrs& attrs, const ClassCounts<T>& counts) {
  const std::vector<T> hits = Accumulate(counts.hits), misses = Accumulate(counts.misses);
  std::vector<T> precision, recall;
  for (size_t i = 0; i < std::min(hits.size(), misses.size()); ++i) {
    precision.push_back(hits[i] / (hits[i] + misses[i]));
    recall.push_back(hits[i] / static_cast<T>(counts.boxes));
  }
  if (attrs.eleven_points) return ElevenPoints(precision, recall);
  T sum = 0, before = 0;
  for (size_t i = 0; i < recall.size(); ++i) {
    if (std::abs(recall[i] - before) > 1e-6) sum += precision[i] * std::abs(recall[i] - before);
    before = recall[i];
  }
  return sum;
}

template <typename T>
T MeanAveragePrecision(const MapAttrs& attrs, const Counts<T>& counts) {
  T sum = 0;
  int64_t classes = 0;
  for (const ClassCounts<T>& of_class : counts) {
    if (!of_class.seen || of_class.boxes == attrs.background_label) continue;
    if (!of_class.hits.empty()) sum += AveragePrecision(attrs, of_class);
    ++classes;
  }
  return classes == 0 ? sum : sum / static_cast<T>(classes);
}

template <typename T>
absl::Status WriteFlags(KernelContext& ctx, const Counts<T>& counts,
                        std::vector<Scored<T>> ClassCounts<T>::*member, Tensor& out) {
  std::vector<int64_t> offsets = {0};
  for (const ClassCounts<T>& of_class : counts) {
    offsets.push_back(offsets.back() + std::ssize(of_class.*member));
  }
  out.shape = {offsets.back(), 2};
  out.lod = {offsets};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  T* to = out.mutable_data<T>();
  for (const ClassCounts<T>& of_class : counts) {
    for (const Scored<T>& entry : of_class.*member) {
      *to++ = entry.score;
      *to++ = static_cast<T>(entry.flag);
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status WriteResults(KernelContext& ctx, const Counts<T>& counts) {
  Tensor& pos = ctx.output(kAccumPosCount);
  pos.shape = {std::ssize(counts), 1};
  pos.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(pos));
  for (size_t c = 0; c < counts.size(); ++c) pos.mutable_data<int32_t>()[c] = counts[c].boxes;
  INTERP_RETURN_IF_ERROR(WriteFlags(ctx, counts, &ClassCounts<T>::hits, ctx.output(kAccumTruePos)));
  INTERP_RETURN_IF_ERROR(
      WriteFlags(ctx, counts, &ClassCounts<T>::misses, ctx.output(kAccumFalsePos)));
  Tensor& map = ctx.output(kMap);
  map.shape = {1};
  map.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(map));
  map.mutable_data<T>()[0] = MeanAveragePrecision(ctx.attrs<MapAttrs>(), counts);
  return absl::OkStatus();
}

template <typename T>
absl::Status DetectionMap(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<MapAttrs>();
  const Tensor& detections = ctx.input(kDetections);
  const Tensor& labels = ctx.input(kLabels);
  if (detections.shape.rank() != 2 || detections.shape[1] != 6) {
    return InvalidArgument("input 'DetectRes' has shape ", ToString(detections.shape),
                           ", expected [D,6]");
  }
  if (labels.shape.rank() != 2 || (labels.shape[1] != 5 && labels.shape[1] != 6)) {
    return InvalidArgument("input 'Label' has shape ", ToString(labels.shape),
                           ", expected [G,5] or [G,6]");
  }
  INTERP_ASSIGN_OR_RETURN(const auto detected, OnlyLevelOffsets(detections, "DetectRes"));
  INTERP_ASSIGN_OR_RETURN(const auto labelled, OnlyLevelOffsets(labels, "Label"));
  if (detected.size() != labelled.size()) {
    return InvalidArgument("'DetectRes' is of ", detected.size() - 1, " images and 'Label' of ",
                           labelled.size() - 1, ", expected as many");
  }
  Counts<T> counts(static_cast<size_t>(attrs.class_num));
  INTERP_RETURN_IF_ERROR(ReadState(ctx, counts));
  for (size_t n = 0; n + 1 < labelled.size(); ++n) {
    INTERP_ASSIGN_OR_RETURN(const auto boxes,
                            BoxesOfImage<T>(labels, labelled[n], labelled[n + 1], attrs.class_num));
    INTERP_RETURN_IF_ERROR(
        CountImage(attrs, detections, detected[n], detected[n + 1], boxes, counts));
  }
  return WriteResults(ctx, counts);
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kAccumPosCount, DType::kInt32); }

INTERP_REGISTER_OP(OpDef{
    .type = "detection_map",
    .inputs = {{"DetectRes"},
               {"Label"},
               {"HasState", kOptional | kAnyDType},
               {"PosCount", kOptional | kAnyDType},
               {"TruePos", kOptional},
               {"FalsePos", kOptional}},
    .outputs = {{"AccumPosCount"}, {"AccumTruePos"}, {"AccumFalsePos"}, {"MAP"}},
    .parse = ParseAttrs<MapAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .kernels = {{DType::kFloat32, DetectionMap<float>}, {DType::kFloat64, DetectionMap<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
