// Rows of iou_similarity, box_coder and yolo_box.
#include <algorithm>

#include "kernels/cuda/boxes.h"
#include "kernels/cuda/optional_data.h"
#include "kernels/cuda/row.h"
#include "kernels/detection/box_attrs.h"

namespace interp::cuda {
namespace {

// X, Y -> Out.
absl::Status Similarity(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  const Tensor& y = ctx.input(/*slot=*/1);
  return BoxSimilarity(x.dtype,
                       {.x = x.raw_data(),
                        .y = y.raw_data(),
                        .out = ctx.output(/*slot=*/0).mutable_raw_data(),
                        .rows = x.shape[0],
                        .columns = y.shape[0],
                        .normalized = ctx.attrs<IouAttrs>().normalized},
                       StreamOf(ctx));
}

// PriorBox, PriorBoxVar, TargetBox -> OutputBox.
absl::Status BoxCoder(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<BoxCoderAttrs>();
  Tensor& out = ctx.output(/*slot=*/0);
  BoxCoderArguments args;
  args.priors = ctx.input(/*slot=*/0).raw_data();
  args.variances = ReadFrom(ctx.optional_input(/*slot=*/1));
  std::copy(attrs.variance.begin(), attrs.variance.end(), args.variance);
  args.target = ctx.input(/*slot=*/2).raw_data();
  args.out = out.mutable_raw_data();
  args.rows = out.shape[0];
  args.columns = out.shape[1];
  args.decode = attrs.decode;
  args.priors_of_rows = attrs.axis == 1;
  args.normalized = attrs.normalized;
  return CodeBoxes(out.dtype, args, StreamOf(ctx));
}

// X, ImgSize -> Boxes, Scores.
absl::Status YoloBox(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<YoloAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  YoloBoxArguments args;
  args.x = x.raw_data();
  args.image_sizes = ctx.input(/*slot=*/1).data<int32_t>();
  args.boxes = ctx.output(/*slot=*/0).mutable_raw_data();
  args.scores = ctx.output(/*slot=*/1).mutable_raw_data();
  args.images = x.shape[0];
  args.height = x.shape[2];
  args.width = x.shape[3];
  args.classes = attrs.class_num;
  args.downsample_ratio = attrs.downsample_ratio;
  args.anchors = static_cast<int>(attrs.num_anchors());
  std::copy(attrs.anchors.begin(), attrs.anchors.end(), args.anchor_sizes);
  args.threshold = attrs.conf_thresh;
  args.scale_x_y = attrs.scale_x_y;
  args.clip = attrs.clip_bbox;
  args.iou_aware = attrs.iou_aware;
  args.iou_aware_factor = attrs.iou_aware_factor;
  return YoloBoxes(x.dtype, args, StreamOf(ctx));
}

bool HasFewAnchors(const void* attrs) {
  return static_cast<const YoloAttrs*>(attrs)->num_anchors() <= kMostYoloAnchors;
}

constexpr std::initializer_list<DType> kBoxFloats = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("iou_similarity", RowsFor(kBoxFloats, Similarity));
INTERP_REGISTER_KERNELS("box_coder", RowsFor(kBoxFloats, BoxCoder));
INTERP_REGISTER_KERNELS("yolo_box", RowsFor(kBoxFloats, YoloBox, HasFewAnchors));

}  // namespace
}  // namespace interp::cuda
