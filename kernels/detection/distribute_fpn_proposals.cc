// distribute_fpn_proposals: sends each region to the level of a feature pyramid that fits its size,
//
//   level = floor(refer_level + log2(sqrt(area) / refer_scale + 1e-6)), within the levels there are
//
// keeping the order within a level. RestoreIndex[i] is where region i went when all levels are
// concatenated.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box.h"
#include "kernels/detection/roi_batches.h"

namespace interp {
namespace {

constexpr int kFpnRois = 0;
constexpr int kRoisNum = 1;
constexpr int kMultiFpnRois = 0;
constexpr int kRestoreIndex = 1;
constexpr int kMultiLevelRoisNum = 2;

struct DistributeAttrs {
  int min_level, max_level, refer_level, refer_scale;
  bool pixel_offset;

  int64_t num_levels() const { return int64_t{max_level} - min_level + 1; }
};

DistributeAttrs ReadAttrs(AttrReader& reader) {
  const DistributeAttrs attrs = {.min_level = reader.Int("min_level", 2),
                                 .max_level = reader.Int("max_level", 5),
                                 .refer_level = reader.Int("refer_level", 4),
                                 .refer_scale = reader.Int("refer_scale", 224),
                                 .pixel_offset = reader.Bool("pixel_offset", true)};
  if (attrs.max_level < attrs.min_level) {
    reader.Fail(absl::StrCat("attribute 'max_level' is ", attrs.max_level, ", below 'min_level', ",
                             attrs.min_level));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const DistributeAttrs& attrs = ctx.attrs<DistributeAttrs>();
  const Shape& rois = ctx.input(kFpnRois).shape;
  if (rois.rank() != 2 || rois[1] != 4) {
    return InvalidArgument("input 'FpnRois' has shape ", ToString(rois), ", expected [R,4]");
  }
  if (std::ssize(ctx.outputs(kMultiFpnRois)) != attrs.num_levels()) {
    return InvalidArgument("output 'MultiFpnRois' has ", ctx.outputs(kMultiFpnRois).size(),
                           " arguments, expected one for each of ", attrs.num_levels(), " levels");
  }
  const int64_t counts = std::ssize(ctx.outputs(kMultiLevelRoisNum));
  if (counts != 0 && counts != attrs.num_levels()) {
    return InvalidArgument("output 'MultiLevelRoIsNum' has ", counts,
                           " arguments, expected none or one for each of ", attrs.num_levels(),
                           " levels");
  }
  return absl::OkStatus();
}

// The level of a region, counted from min_level.
template <typename T>
int64_t LevelOf(const T* box, const DistributeAttrs& attrs) {
  const T scale = std::sqrt(BoxArea(box, !attrs.pixel_offset)) / static_cast<T>(attrs.refer_scale);
  const T level =
      std::floor(std::log2(scale + static_cast<T>(1e-6)) + static_cast<T>(attrs.refer_level));
  // In this order NaN becomes the lowest level.
  const T above = std::max(T{0}, level - static_cast<T>(attrs.min_level));
  return static_cast<int64_t>(std::min(above, static_cast<T>(attrs.num_levels() - 1)));
}

// Writes one level's regions; `offsets` divides them by image.
template <typename T>
absl::Status WriteLevel(KernelContext& ctx, int64_t level, const std::vector<int64_t>& members,
                        const std::vector<int64_t>& offsets) {
  if (Tensor* rois = ctx.outputs(kMultiFpnRois)[level]) {
    rois->shape = {std::ssize(members), 4};
    rois->lod = {offsets};
    INTERP_RETURN_IF_ERROR(ctx.Allocate(*rois));
    T* out = rois->mutable_data<T>();
    for (const int64_t i : members) {
      out = std::copy_n(ctx.input(kFpnRois).data<T>() + i * 4, 4, out);
    }
  }
  if (ctx.outputs(kMultiLevelRoisNum).empty()) return absl::OkStatus();
  Tensor* counts = ctx.outputs(kMultiLevelRoisNum)[level];
  if (counts == nullptr) return absl::OkStatus();
  counts->shape = {std::ssize(offsets) - 1};
  counts->lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(*counts));
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    counts->mutable_data<int32_t>()[i] = static_cast<int32_t>(offsets[i + 1] - offsets[i]);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status DistributeFpnProposals(KernelContext& ctx) {
  const DistributeAttrs& attrs = ctx.attrs<DistributeAttrs>();
  const Tensor& rois = ctx.input(kFpnRois);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          RoiOffsets(rois, ctx.optional_input(kRoisNum)));
  std::vector<std::vector<int64_t>> members(attrs.num_levels());
  std::vector<std::vector<int64_t>> offsets(attrs.num_levels(), {0});
  for (size_t image = 0; image + 1 < images.size(); ++image) {
    for (int64_t i = images[image]; i < images[image + 1]; ++i) {
      members[LevelOf(rois.data<T>() + i * 4, attrs)].push_back(i);
    }
    for (size_t level = 0; level < members.size(); ++level) {
      offsets[level].push_back(std::ssize(members[level]));
    }
  }
  Tensor& restore = ctx.output(kRestoreIndex);
  restore.shape = {rois.shape[0], 1};
  restore.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(restore));
  int32_t position = 0;
  for (size_t level = 0; level < members.size(); ++level) {
    for (const int64_t i : members[level]) restore.mutable_data<int32_t>()[i] = position++;
    INTERP_RETURN_IF_ERROR(
        WriteLevel<T>(ctx, static_cast<int64_t>(level), members[level], offsets[level]));
  }
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) {
  ctx.Set(kRestoreIndex, DType::kInt32);
  ctx.Set(kMultiLevelRoisNum, DType::kInt32);
}

INTERP_REGISTER_OP(OpDef{
    .type = "distribute_fpn_proposals",
    .inputs = {{"FpnRois"}, {"RoisNum", kOptional | kAnyDType}},
    .outputs = {{"MultiFpnRois", kVariadic},
                {"RestoreIndex"},
                {"MultiLevelRoIsNum", kOptional | kVariadic}},
    .parse = ParseAttrs<DistributeAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, DistributeFpnProposals<float>},
                {DType::kFloat64, DistributeFpnProposals<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
