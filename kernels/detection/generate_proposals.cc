// generate_proposals_v2: the regions of a region proposal network. Per image: the best pre_nms_topN
// anchors by score, moved by their offsets, clipped to the image, without those smaller than
// min_size, thinned out by greedy suppression to post_nms_topN.
//
//   Scores [N,A,H,W], BboxDeltas [N,4A,H,W], ImShape [N,2] height and width,
//   Anchors and Variances [H,W,A,4] -> RpnRois [R,4], RpnRoiProbs [R,1], RpnRoisNum [N]
//
// An image without any region left gives one of zeros.
//
// generate_proposals: the same with ImInfo [N,3] in place of ImShape. Its third column is the scale
// of the image, by which min_size is to be multiplied. RpnRois and RpnRoiProbs have a LoD.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box.h"

namespace interp {
namespace {

constexpr int kScores = 0;
constexpr int kDeltas = 1;
constexpr int kImShape = 2;
constexpr int kAnchors = 3;
constexpr int kVariances = 4;
constexpr int kRois = 0;
constexpr int kProbs = 1;
constexpr int kRoisNum = 2;

struct ProposalAttrs {
  int64_t pre_nms_top_n, post_nms_top_n;
  float nms_thresh, min_size, eta;
  bool pixel_offset;
  bool with_scale = false;  // generate_proposals
};

ProposalAttrs ReadAttrs(AttrReader& reader) {
  return {.pre_nms_top_n = reader.Int("pre_nms_topN", 6000),
          .post_nms_top_n = reader.Int("post_nms_topN", 1000),
          .nms_thresh = reader.Float("nms_thresh", 0.5),
          .min_size = reader.Float("min_size", 0.1f),
          .eta = reader.Float("eta", 1),
          .pixel_offset = reader.Bool("pixel_offset", true)};
}

ProposalAttrs ReadScaledAttrs(AttrReader& reader) {
  ProposalAttrs attrs = ReadAttrs(reader);
  attrs.pixel_offset = true;
  attrs.with_scale = true;
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& scores = ctx.input(kScores).shape;
  const Shape& deltas = ctx.input(kDeltas).shape;
  const Shape& image = ctx.input(kImShape).shape;
  if (scores.rank() != 4 || deltas.rank() != 4 || deltas[0] != scores[0] ||
      deltas[1] != 4 * scores[1] || deltas[2] != scores[2] || deltas[3] != scores[3]) {
    return InvalidArgument("inputs 'Scores' and 'BboxDeltas' have shapes ", ToString(scores),
                           " and ", ToString(deltas), ", expected [N,A,H,W] and [N,4A,H,W]");
  }
  const bool with_scale = ctx.attrs<ProposalAttrs>().with_scale;
  const int64_t columns = with_scale ? 3 : 2;
  if (image.rank() != 2 || image[0] != scores[0] || image[1] < columns) {
    return InvalidArgument("input '", with_scale ? "ImInfo" : "ImShape", "' has shape ",
                           ToString(image), ", expected [", scores[0], ",", columns, "]");
  }
  for (const int slot : {kAnchors, kVariances}) {
    const Shape& shape = ctx.input(slot).shape;
    if (shape.rank() >= 1 && shape.back() == 4 && shape.numel() == scores.numel(1, 4) * 4) continue;
    return InvalidArgument("input '", slot == kAnchors ? "Anchors" : "Variances", "' has shape ",
                           ToString(shape), " for 'Scores' ", ToString(scores),
                           ", expected [H,W,A,4]");
  }
  return absl::OkStatus();
}

template <typename T>
struct Proposal {
  T box[4];
  T score;
};

// One image. Anchor i is channel i % A at cell i / A.
template <typename T>
struct Image {
  const T* scores;
  const T* deltas;
  const T* anchors;
  const T* variances;
  T height, width;
  T scale;                     // of the image that boxes are of, to the one that min_size is of
  int64_t num_anchors, cells;  // A and H*W

  int64_t size() const { return num_anchors * cells; }
  T score(int64_t i) const { return scores[i % num_anchors * cells + i / num_anchors]; }
  T delta(int64_t i, int k) const {
    return deltas[(i % num_anchors * 4 + k) * cells + i / num_anchors];
  }
};

// The numbers of the best anchors. Which ones tie at the border, and their order, is settled by the
// algorithms; Paddle uses the same. NaN ranks last.
template <typename T>
std::vector<int32_t> BestAnchors(const Image<T>& image, int64_t count) {
  std::vector<T> scores(image.size());
  for (int64_t i = 0; i < image.size(); ++i) scores[i] = image.score(i);
  std::vector<int32_t> order(image.size());
  std::iota(order.begin(), order.end(), 0);
  const auto above = [&scores](int32_t a, int32_t b) {
    return scores[a] > scores[b] || (std::isnan(scores[b]) && !std::isnan(scores[a]));
  };
  if (count <= 0 || count >= image.size()) {
    std::sort(order.begin(), order.end(), above);
  } else {
    std::nth_element(order.begin(), order.begin() + count, order.end(), above);
    order.resize(count);
  }
  return order;
}

// The anchor moved by its offsets, clipped to the image.
template <typename T>
Proposal<T> Decode(const Image<T>& image, int64_t i, T pixel) {
  static const double kMaxLogScale = std::log(1000.0 / 16.0);
  const T* anchor = image.anchors + i * 4;
  const T* variance = image.variances + i * 4;
  Proposal<T> p;
  p.score = image.score(i);
  for (int axis = 0; axis < 2; ++axis) {
    const T size = anchor[2 + axis] - anchor[axis] + pixel;
    const T centre = static_cast<T>(anchor[axis] + 0.5 * size);
    const T moved = variance[axis] * image.delta(i, axis) * size + centre;
    const T log_scale = variance[2 + axis] * image.delta(i, 2 + axis);
    const T scaled = std::exp(std::min(log_scale, static_cast<T>(kMaxLogScale))) * size;
    const T last = (axis == 0 ? image.width : image.height) - pixel;
    p.box[axis] = std::max(std::min(moved - scaled / 2, last), T{0});
    p.box[2 + axis] = std::max(std::min(moved + scaled / 2 - pixel, last), T{0});
  }
  return p;
}

template <typename T>
bool IsLargeEnough(const T* box, const Image<T>& image, float min_size, T pixel) {
  const T width = box[2] - box[0] + pixel, height = box[3] - box[1] + pixel;
  const T wide = (box[2] - box[0]) / image.scale + pixel;
  const T high = (box[3] - box[1]) / image.scale + pixel;
  if (!(wide >= min_size && high >= min_size)) return false;
  if (pixel == 0) return true;
  return box[0] + width / 2 <= image.width && box[1] + height / 2 <= image.height;
}

// Greedy suppression by falling score; of equal scores the later one goes first.
template <typename T>
std::vector<Proposal<T>> Suppress(const std::vector<Proposal<T>>& proposals,
                                  const ProposalAttrs& attrs) {
  std::vector<int32_t> order(proposals.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const T x = proposals[a].score, y = proposals[b].score;
    return x > y || (std::isnan(y) && !std::isnan(x));
  });
  BoxList<T> boxes(/*normalized=*/!attrs.pixel_offset);
  std::vector<Proposal<T>> kept;
  T threshold = static_cast<T>(attrs.nms_thresh);
  for (const int32_t i : order) {
    if (attrs.post_nms_top_n > 0 && std::ssize(kept) == attrs.post_nms_top_n) break;
    if (!boxes.AllOverlapsWithin(proposals[i].box, threshold)) continue;
    boxes.Add(proposals[i].box);
    kept.push_back(proposals[i]);
    if (attrs.eta < 1 && threshold > 0.5) threshold *= attrs.eta;
  }
  return kept;
}

template <typename T>
std::vector<Proposal<T>> Propose(const Image<T>& image, const ProposalAttrs& attrs) {
  const T pixel = attrs.pixel_offset ? T{1} : T{0};
  const float min_size = std::max(attrs.min_size, 1.0f);
  std::vector<Proposal<T>> proposals;
  for (const int32_t i : BestAnchors(image, attrs.pre_nms_top_n)) {
    const Proposal<T> proposal = Decode(image, i, pixel);
    if (IsLargeEnough(proposal.box, image, min_size, pixel)) proposals.push_back(proposal);
  }
  if (proposals.empty()) return {Proposal<T>{}};
  return attrs.nms_thresh <= 0 ? proposals : Suppress(proposals, attrs);
}

template <typename T>
absl::Status WriteProposals(KernelContext& ctx,
                            const std::vector<std::vector<Proposal<T>>>& by_image) {
  std::vector<int64_t> offsets = {0};
  for (const auto& proposals : by_image) offsets.push_back(offsets.back() + std::ssize(proposals));
  const int64_t total = offsets.back();
  Tensor& rois = ctx.output(kRois);
  Tensor& probs = ctx.output(kProbs);
  rois.shape = {total, 4};
  probs.shape = {total, 1};
  rois.lod = ctx.attrs<ProposalAttrs>().with_scale ? Lod{std::move(offsets)} : Lod{};
  probs.lod = rois.lod;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(rois));
  INTERP_RETURN_IF_ERROR(ctx.Allocate(probs));
  T* box = rois.mutable_data<T>();
  T* score = probs.mutable_data<T>();
  for (const auto& proposals : by_image) {
    for (const Proposal<T>& p : proposals) {
      box = std::copy_n(p.box, 4, box);
      *score++ = p.score;
    }
  }
  Tensor* counts = ctx.optional_output(kRoisNum);
  if (counts == nullptr) return absl::OkStatus();
  counts->shape = {std::ssize(by_image)};
  counts->lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(*counts));
  for (size_t i = 0; i < by_image.size(); ++i) {
    counts->mutable_data<int32_t>()[i] = static_cast<int32_t>(by_image[i].size());
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GenerateProposals(KernelContext& ctx) {
  const Tensor& scores = ctx.input(kScores);
  const Tensor& im_shape = ctx.input(kImShape);
  const bool with_scale = ctx.attrs<ProposalAttrs>().with_scale;
  const int64_t per_image = scores.shape.numel(1, 4);
  if (per_image > INT32_MAX) return InvalidArgument("an image has ", per_image, " anchors");
  std::vector<std::vector<Proposal<T>>> by_image;
  for (int64_t n = 0; n < scores.shape[0]; ++n) {
    const T* size = im_shape.data<T>() + n * im_shape.shape[1];
    const Image<T> image = {.scores = scores.data<T>() + n * per_image,
                            .deltas = ctx.input(kDeltas).data<T>() + n * per_image * 4,
                            .anchors = ctx.input(kAnchors).data<T>(),
                            .variances = ctx.input(kVariances).data<T>(),
                            .height = size[0],
                            .width = size[1],
                            .scale = with_scale ? size[2] : T{1},
                            .num_anchors = scores.shape[1],
                            .cells = scores.shape[2] * scores.shape[3]};
    by_image.push_back(Propose(image, ctx.attrs<ProposalAttrs>()));
  }
  return WriteProposals(ctx, by_image);
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kRoisNum, DType::kInt32); }

OpDef ProposalsDef(absl::string_view type, absl::string_view image_slot) {
  return OpDef{
      .type = type,
      .inputs = {{"Scores"}, {"BboxDeltas"}, {image_slot}, {"Anchors"}, {"Variances"}},
      .outputs = {{"RpnRois"}, {"RpnRoiProbs"}, {"RpnRoisNum", kOptional}},
      .parse = ParseAttrs<ProposalAttrs, ReadAttrs>,
      .infer_dtype = InferTypes,
      .infer = Infer,
      .kernels = {{DType::kFloat32, GenerateProposals<float>},
                  {DType::kFloat64, GenerateProposals<double>}},
      .dynamic_outputs = true,
      .gradient = {.none = true},
  };
}

OpDef ScaledProposalsDef() {
  OpDef def = ProposalsDef("generate_proposals", "ImInfo");
  def.parse = ParseAttrs<ProposalAttrs, ReadScaledAttrs>;
  return def;
}

INTERP_REGISTER_OP(ProposalsDef("generate_proposals_v2", "ImShape"));
INTERP_REGISTER_OP(ScaledProposalsDef());

}  // namespace
}  // namespace interp
