// collect_fpn_proposals: the post_nms_topN best regions of all levels of a feature pyramid, by
// image and, within an image, by falling score; of equal scores the later one comes first.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/roi_batches.h"
#include "kernels/util/all_present.h"

namespace interp {
namespace {

constexpr int kRois = 0;
constexpr int kScores = 1;
constexpr int kLevelRoisNum = 2;
constexpr int kFpnRois = 0;
constexpr int kRoisNum = 1;

struct CollectAttrs {
  int64_t post_nms_top_n;
};

CollectAttrs ReadAttrs(AttrReader& reader) {
  const CollectAttrs attrs = {reader.Int("post_nms_topN", 0)};
  if (attrs.post_nms_top_n < 0) {
    reader.Fail(absl::StrCat("attribute 'post_nms_topN' is ", attrs.post_nms_top_n));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const absl::Span<const Tensor*const> rois = ctx.inputs(kRois), scores = ctx.inputs(kScores);
  const size_t counts = ctx.inputs(kLevelRoisNum).size();
  if (rois.empty() || scores.size() != rois.size() || (counts != 0 && counts != rois.size())) {
    return InvalidArgument(
        "inputs 'MultiLevelRois', 'MultiLevelScores' and 'MultiLevelRoIsNum' have ", rois.size(),
        ", ", scores.size(), " and ", counts, " arguments, expected one for each level");
  }
  INTERP_RETURN_IF_ERROR(CheckAllPresent(rois, "MultiLevelRois"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(scores, "MultiLevelScores"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(kLevelRoisNum), "MultiLevelRoIsNum"));
  for (size_t level = 0; level < rois.size(); ++level) {
    const Shape& shape = rois[level]->shape;
    if (shape.rank() != 2 || shape[1] != 4 || scores[level]->numel() != shape[0]) {
      return InvalidArgument("regions and scores of level ", level, " have shapes ",
                             ToString(shape), " and ", ToString(scores[level]->shape),
                             ", expected [R,4] and [R,1]");
    }
  }
  return absl::OkStatus();
}

template <typename T>
struct Region {
  T score;
  int64_t image;
  const T* box;
};

template <typename T>
absl::StatusOr<std::vector<Region<T>>> ListRegions(KernelContext& ctx, int64_t& num_images) {
  std::vector<Region<T>> regions;
  for (size_t level = 0; level < ctx.inputs(kRois).size(); ++level) {
    const Tensor& rois = *ctx.inputs(kRois)[level];
    const T* scores = ctx.inputs(kScores)[level]->data<T>();
    const Tensor* counts =
        ctx.inputs(kLevelRoisNum).empty() ? nullptr : ctx.inputs(kLevelRoisNum)[level];
    INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, RoiOffsets(rois, counts));
    num_images = std::max(num_images, std::ssize(offsets) - 1);
    for (int64_t image = 0; image + 1 < std::ssize(offsets); ++image) {
      for (int64_t i = offsets[image]; i < offsets[image + 1]; ++i) {
        regions.push_back({scores[i], image, rois.data<T>() + i * 4});
      }
    }
  }
  return regions;
}

template <typename T>
void KeepBest(std::vector<Region<T>>& regions, int64_t count) {
  std::reverse(regions.begin(), regions.end());
  std::stable_sort(regions.begin(), regions.end(), [](const Region<T>& a, const Region<T>& b) {
    return a.score > b.score || (std::isnan(b.score) && !std::isnan(a.score));
  });
  if (count < std::ssize(regions)) regions.resize(count);
  std::stable_sort(regions.begin(), regions.end(),
                   [](const Region<T>& a, const Region<T>& b) { return a.image < b.image; });
}

template <typename T>
absl::Status CollectFpnProposals(KernelContext& ctx) {
  int64_t num_images = 0;
  INTERP_ASSIGN_OR_RETURN(std::vector<Region<T>> regions, ListRegions<T>(ctx, num_images));
  KeepBest(regions, ctx.attrs<CollectAttrs>().post_nms_top_n);
  std::vector<int64_t> offsets(num_images + 1, 0);
  for (const Region<T>& region : regions) ++offsets[region.image + 1];
  for (int64_t i = 0; i < num_images; ++i) offsets[i + 1] += offsets[i];

  Tensor& out = ctx.output(kFpnRois);
  out.shape = {std::ssize(regions), 4};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  T* box = out.mutable_data<T>();
  for (const Region<T>& region : regions) box = std::copy_n(region.box, 4, box);
  if (Tensor* counts = ctx.optional_output(kRoisNum)) {
    counts->shape = {num_images};
    counts->lod.clear();
    INTERP_RETURN_IF_ERROR(ctx.Allocate(*counts));
    for (int64_t i = 0; i < num_images; ++i) {
      counts->mutable_data<int32_t>()[i] = static_cast<int32_t>(offsets[i + 1] - offsets[i]);
    }
  }
  out.lod = {std::move(offsets)};
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kRoisNum, DType::kInt32); }

INTERP_REGISTER_OP(OpDef{
    .type = "collect_fpn_proposals",
    .inputs = {{"MultiLevelRois", kVariadic},
               {"MultiLevelScores", kVariadic},
               {"MultiLevelRoIsNum", kOptional | kVariadic | kAnyDType}},
    .outputs = {{"FpnRois"}, {"RoisNum", kOptional}},
    .parse = ParseAttrs<CollectAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, CollectFpnProposals<float>},
                {DType::kFloat64, CollectFpnProposals<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
