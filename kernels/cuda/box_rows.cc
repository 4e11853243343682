// Rows of iou_similarity, box_coder, prior_box and yolo_box.
#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/cuda/boxes.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/row.h"
#include "kernels/detection/box_attrs.h"
#include "kernels/detection/priors.h"
#include "kernels/util/data_or_null.h"

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
  args.variances = InputOrNull(ctx, /*slot=*/1);
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

// Input, Image -> Boxes, Variances.
template <typename T>
absl::Status PriorBox(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<PriorBoxAttrs>();
  Tensor& boxes = ctx.output(/*slot=*/0);
  if (boxes.numel() == 0) return absl::OkStatus();
  std::vector<int64_t> halves;  // doubles, by their bits
  for (const PriorSize& size : attrs.sizes) {
    halves.push_back(std::bit_cast<int64_t>(size.width / 2));
    halves.push_back(std::bit_cast<int64_t>(size.height / 2));
  }
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {halves}));
  const Grid<T> grid(ctx.input(/*slot=*/0).shape, ctx.input(/*slot=*/1).shape, attrs.step_w,
                     attrs.step_h, attrs.offset);
  PriorBoxArguments args = {.halves = numbers.list(0),
                            .priors = std::ssize(attrs.sizes),
                            .height = grid.height,
                            .width = grid.width,
                            .image_height = grid.image_height,
                            .image_width = grid.image_width,
                            .step_height = grid.step_height,
                            .step_width = grid.step_width,
                            .offset = grid.offset,
                            .clip = attrs.clip,
                            .boxes = boxes.mutable_raw_data(),
                            .variances = ctx.output(/*slot=*/1).mutable_raw_data()};
  std::copy(attrs.variances.begin(), attrs.variances.end(), args.variance);
  return PriorBoxes(boxes.dtype, args, StreamOf(ctx));
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
INTERP_REGISTER_KERNELS("prior_box", RowsFor({DType::kFloat32}, PriorBox<float>));
INTERP_REGISTER_KERNELS("prior_box", RowsFor({DType::kFloat64}, PriorBox<double>));
INTERP_REGISTER_KERNELS("yolo_box", RowsFor(kBoxFloats, YoloBox, HasFewAnchors));

}  // namespace
}  // namespace interp::cuda
